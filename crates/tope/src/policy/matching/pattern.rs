//! `[METHOD[,METHOD]] PATH`, where `*` is one segment, `:name` a named one, and `**` the rest.

use crate::policy::error::Place;

/// Which requests, by method and path.
#[derive(Clone, Debug)]
pub(in crate::policy) struct Pattern {
    /// As written.
    pub(in crate::policy) text: Box<str>,
    pub(in crate::policy) place: Place,
    /// None: any. HEAD follows GET.
    pub(in crate::policy) methods: Vec<Box<str>>,
    pub(in crate::policy) segments: Vec<Segment>,
    /// Whether it ends in `**`.
    pub(in crate::policy) tail: bool,
    /// The leading literal segments as one text, `/api/v1`, and how many they are.
    prefix: Box<str>,
    literal: usize,
}

/// One segment of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::policy) enum Segment {
    /// This text.
    Literal(Box<str>),
    /// Any text: `*`.
    Any,
    /// Any text, which a key can name: `:name`.
    Named(Box<str>),
}

impl Pattern {
    /// The pattern of these parts.
    pub(super) fn new(text: &str, place: Place, methods: Vec<Box<str>>, segments: Vec<Segment>, tail: bool) -> Self {
        let leading = segments.iter().map_while(|segment| match segment {
            Segment::Literal(text) => Some(&**text),
            _ => None,
        });
        let literal = leading.clone().count();
        let prefix: String = leading.flat_map(|text| ["/", text]).collect();
        Self { text: text.into(), place, methods, segments, tail, prefix: prefix.into(), literal }
    }

    /// Whether a request matches. The path is in its normal form.
    pub(in crate::policy) fn matches(&self, method: &str, path: &str, ignore_case: bool) -> bool {
        self.takes(method) && self.walk(path, ignore_case)
    }

    /// Whether it is for this method, in any case: methods are case-sensitive (RFC 9110 section 9.1), and many servers
    /// take `post` for POST all the same, so a limit on POST has to count it.
    pub(in crate::policy) fn takes(&self, method: &str) -> bool {
        let takes =
            |own: &str| own.eq_ignore_ascii_case(method) || (own == "GET" && method.eq_ignore_ascii_case("HEAD"));
        self.methods.is_empty() || self.methods.iter().any(|own| takes(own))
    }

    fn walk(&self, path: &str, ignore_case: bool) -> bool {
        let same = |own: &str, other: &str| if ignore_case { own.eq_ignore_ascii_case(other) } else { own == other };
        let path = if path == "/" { "" } else { path };
        let Some((head, mut rest)) = path.split_at_checked(self.prefix.len()) else { return false };
        if !same(&self.prefix, head) || !(self.prefix.is_empty() || rest.is_empty() || rest.starts_with('/')) {
            return false;
        }
        for segment in &self.segments[self.literal..] {
            let Some((one, tail)) = next(rest) else { return false };
            match segment {
                Segment::Literal(text) if !same(text, one) => return false,
                _ => rest = tail,
            }
        }
        self.tail || rest.is_empty()
    }

    /// The segment of this name in a path that matched.
    pub(super) fn named<'p>(&self, path: &'p str, name: &str) -> Option<&'p str> {
        let is = |segment: &Segment| matches!(segment, Segment::Named(own) if **own == *name);
        let at = self.segments.iter().position(is)?;
        let mut rest = path;
        for _ in 0..at {
            (_, rest) = next(rest)?;
        }
        next(rest).map(|(one, _)| one)
    }

    /// The same for one of its methods.
    pub(in crate::policy) fn only(&self, method: &str) -> Self {
        Self { methods: vec![method.into()], ..self.clone() }
    }

    /// Whether every path and method that matches `other` matches this.
    pub(in crate::policy) fn covers(&self, other: &Self) -> bool {
        let covers = |own: &Segment, other: &Segment| !matches!(own, Segment::Literal(_)) || own == other;
        let long = other.segments.len() >= self.segments.len();
        let ends = if self.tail { long } else { other.segments.len() == self.segments.len() && !other.tail };
        let methods = self.methods.is_empty()
            || (!other.methods.is_empty() && other.methods.iter().all(|method| self.takes(method)));
        ends && methods && self.segments.iter().zip(&other.segments).all(|(own, other)| covers(own, other))
    }

    /// Whether some path and method may match both.
    pub(in crate::policy) fn meets(&self, other: &Self) -> bool {
        let fits = |own: &Segment, other: &Segment| match (own, other) {
            (Segment::Literal(own), Segment::Literal(other)) => own == other,
            _ => true,
        };
        let (own, others) = (self.segments.len(), other.segments.len());
        let lengths = own == others || (self.tail && own < others) || (other.tail && others < own);
        let methods = self.methods.is_empty()
            || other.methods.is_empty()
            || self.methods.iter().any(|method| other.takes(method))
            || other.methods.iter().any(|method| self.takes(method));
        lengths && methods && self.segments.iter().zip(&other.segments).all(|(own, other)| fits(own, other))
    }
}

/// The first segment of a path, and what is after it.
fn next(path: &str) -> Option<(&str, &str)> {
    let path = path.strip_prefix('/').unwrap_or(path);
    if path.is_empty() {
        return None;
    }
    Some(path.split_at(path.find('/').unwrap_or(path.len())))
}
