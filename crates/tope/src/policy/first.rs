//! Which limits can apply to a path, by its first segment: with hundreds of limits a request looks at a few.

use std::collections::HashMap;

use super::limit::{Limit, Mode};
use super::matching::Segment;

/// The places of limits by the first segment of a path, each list in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Index {
    by_segment: HashMap<Box<str>, Box<[u16]>>,
    /// For any other first segment.
    others: Box<[u16]>,
    ignore_case: bool,
    /// There are few limits, or the lists would be too long: every limit is looked at.
    all: bool,
}

/// So few limits are sooner looked at than looked up.
const FEW: usize = 4;

/// More places in all lists together are not worth their memory.
const MOST: usize = 1 << 20;

impl Index {
    pub(super) fn new(limits: &[Limit], ignore_case: bool) -> Self {
        let places = || 0..u16::try_from(limits.len()).expect("there are at most 10,000 limits");
        let active = |place: &u16| limits[usize::from(*place)].mode != Mode::Disabled;
        if limits.len() <= FEW {
            let others = places().filter(active).collect();
            return Self { others, ignore_case, all: true, ..Self::default() };
        }
        let mut firsts: Vec<&str> = limits.iter().flat_map(firsts).flatten().collect();
        firsts.sort_unstable();
        firsts.dedup();
        let of = |first: Option<&str>| -> Box<[u16]> {
            let fits = |place: &u16| {
                let mut own = self::firsts(&limits[usize::from(*place)]);
                own.any(|own| own.is_none() || own == first)
            };
            places().filter(active).filter(fits).collect()
        };
        if firsts.len().saturating_mul(limits.len()) > MOST {
            let others = places().filter(active).collect();
            return Self { others, ignore_case, all: true, ..Self::default() };
        }
        let by_segment = firsts.iter().map(|first| ((*first).into(), of(Some(first)))).collect();
        Self { by_segment, others: of(None), ignore_case, all: false }
    }

    /// The places of the limits that may apply to a path.
    pub(super) fn of(&self, path: &str) -> &[u16] {
        if self.all {
            return &self.others;
        }
        let first = path.strip_prefix('/').unwrap_or(path);
        let first = first.split('/').next().unwrap_or_default();
        let found = if self.ignore_case && first.bytes().any(|byte| byte.is_ascii_uppercase()) {
            self.by_segment.get(first.to_ascii_lowercase().as_str())
        } else {
            self.by_segment.get(first)
        };
        found.unwrap_or(&self.others)
    }
}

/// The first segments of a limit's patterns; `None` is any, and also no segment at all.
fn firsts(limit: &Limit) -> Box<dyn Iterator<Item = Option<&str>> + '_> {
    if limit.matching.patterns.is_empty() {
        return Box::new([None].into_iter());
    }
    Box::new(limit.matching.patterns.iter().map(|pattern| match pattern.segments.first() {
        Some(Segment::Literal(text)) => Some(&**text),
        _ => None,
    }))
}
