//! The gateway put together: policy, store, layer, proxy, listeners.
//!
//! | room | what is in it |
//! |---|---|
//! | `mod` | the parts, and the order in which they start and end |
//! | `forward` | the proxy of one worker, which a reload can replace |
//! | `operate` | signals, reloads, the state file, the admin listener: all that is not a request |
//! | `greet` | what is said when it listens |

mod forward;
mod greet;
mod operate;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tope::clock::Clock;
use tope::store::memory::Memory;
use tope::{Limiter, tower};

use self::forward::Forward;
use self::operate::Operation;
use crate::admin::Admin;
use crate::gateway::Server;
use crate::gateway::serve;
use crate::load::{self, Loaded};
use crate::reload::Watch;
use crate::settings::Settings;
use crate::shutdown::Shutdown;
use crate::state::{Restored, StateFile};
use crate::talk::{self, BadInput};
use crate::telemetry::access_log::Log;
use crate::telemetry::exposition::Metrics;
use crate::telemetry::metrics::{Reloads, Worker};
use crate::telemetry::observer::Observer;

/// What the command line says.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policy file.
    pub file: PathBuf,
    /// Count and report everything, refuse nothing.
    pub shadow: bool,
    /// Listen here instead of where the policy says.
    pub listen: Option<SocketAddr>,
    /// Threads that serve; as many as there are cores unless said.
    pub workers: Option<u16>,
}

/// The limiter of the gateway: a policy over a store that metrics and the state file look at too.
type GatewayLimiter = Limiter<Arc<Memory>>;

/// Runs the gateway until it is told to stop: until then, nothing that fails ends it.
///
/// # Errors
/// When the policy can't be used or a listener can't be had; then nothing has started.
pub fn gateway(options: &Options) -> anyhow::Result<ExitCode> {
    let (loaded, watch) = Watch::read(vec![options.file.clone()], || {
        let loaded = load::policy(&options.file);
        let files = loaded.as_ref().map_or_else(|_| vec![options.file.clone()], |loaded| loaded.files(&options.file));
        (loaded, files)
    });
    let loaded = loaded?;
    let settings = loaded.settings.clone();
    if settings.upstreams.is_empty() {
        let message = format!("{}: the policy names no upstream", options.file.display());
        return Err(BadInput::new(message).hint("write `upstream: http://HOST:PORT`, or `upstream: demo`").into());
    }
    let clock = Arc::new(Clock::new());
    let state = settings.memory_file.clone().map(StateFile::new);
    if let Some(state) = &state {
        let hint = "name a folder that exists and that this user may write in";
        state.probe().map_err(|error| BadInput::new(format!("memory.file can't be written: {error}")).hint(hint))?;
    }
    let store = Arc::new(store(&settings, state.as_ref(), &clock)?);
    let limiter = Arc::new(Limiter::new(Arc::clone(&store), in_force(loaded, options.shadow))?);

    let serve_settings = serve_settings(options, &settings);
    let workers = serve_settings.workers;
    let listen = options.listen.unwrap_or(settings.listen);
    let server = Server::bind(listen, serve_settings).with_context(|| unavailable("listen", listen))?;
    let admin = Admin::bind(settings.admin).with_context(|| unavailable("admin.listen", settings.admin))?;
    let log = settings.access_log.then(|| Log::start(std::io::stdout())).transpose()?;
    let metrics = Arc::new(Metrics {
        workers: (0..workers).map(|_| Arc::new(Worker::default())).collect(),
        reloads: Arc::new(Reloads::default()),
        lost_lines: log.as_ref().map(Log::lost),
        store,
        clock: Arc::clone(&clock),
    });
    let forwards: Vec<Forward> = (0..workers).map(|_| Forward::new(&settings)).collect();

    let (greeted, admin_address) = (settings.clone(), admin.address()?);
    let shutdown = Shutdown::new();
    let operation = Operation {
        options: options.clone(),
        settings,
        limiter: Arc::clone(&limiter),
        forwards: forwards.clone(),
        metrics: Arc::clone(&metrics),
        state,
        shutdown: shutdown.clone(),
    };
    let operating = operation.start(admin, watch)?;
    let address = server.address();
    // Whoever hears this may send requests and signals: both are listened to by now.
    let greeting = || greet::listening(address, admin_address, &greeted, &limiter.policy(), options.shadow);

    let served = server.run(&shutdown, greeting, |worker| {
        let writer = log.as_ref().map(Log::writer);
        let observer = Observer::new(Arc::clone(&metrics.workers[worker]), writer);
        let timer = tower::Timer::new(|time| Box::pin(tokio::time::sleep(time)));
        let layer = tower::Layer::timed(Arc::clone(&limiter), Arc::clone(&clock), observer, timer);
        let forward = forwards[worker].clone();
        move |peer: SocketAddr| layer.for_peer_reading(peer.ip(), forward.clone())
    });
    // Whatever ended the serving, the rest follows in order: operators last, then what must be written.
    shutdown.end();
    operating.finish();
    if let Some(log) = log {
        log.finish();
    }
    served.context("the gateway can't serve")?;
    Ok(ExitCode::SUCCESS)
}

/// The policy as it is enforced.
fn in_force(loaded: Loaded, shadow: bool) -> tope::Policy {
    if shadow { loaded.policy.shadow() } else { loaded.policy }
}

fn store(settings: &Settings, state: Option<&StateFile>, clock: &Clock) -> anyhow::Result<Memory> {
    let fresh = || Memory::new(settings.max_keys);
    let store = match state.map(|state| state.restore(settings.max_keys, clock.now_us())).transpose() {
        Ok(None | Some(Restored::Fresh)) => fresh()?,
        Ok(Some(Restored::Kept(store))) => *store,
        Ok(Some(Restored::PutAside(aside, why))) => {
            let aside = aside.display();
            talk::say(&format!("warning: {why}; it is now {aside}, and every budget begins full\n"));
            fresh()?
        }
        Err(error) => return Err(anyhow::Error::new(error).context("memory.file can't be used")),
    };
    // The places of requests in their order cost a shared counter, which only an access log needs.
    Ok(if settings.access_log { store.in_order() } else { store })
}

fn serve_settings(options: &Options, settings: &Settings) -> serve::Settings {
    let mut serve = serve::Settings::default();
    serve.workers = options.workers.map_or(serve.workers, usize::from);
    serve.connections = serve.connections.min(connections(serve.workers));
    serve.header = settings.header_timeout;
    serve.idle = settings.idle_timeout;
    serve
}

/// Files that are open besides connections: listeners, the state file, the log, operators.
const OTHER_FILES: u64 = 64;

/// The connections that a worker can have under the system's limit on open files, which is raised as far as it goes.
/// Each may need another to an upstream.
fn connections(workers: usize) -> u32 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    let spare = files.unwrap_or(u64::MAX).saturating_sub(OTHER_FILES) / 2 / (workers.max(1) as u64);
    u32::try_from(spare).unwrap_or(u32::MAX).max(16)
}

fn unavailable(field: &str, address: SocketAddr) -> String {
    format!("`{field}` {address} can't be had")
}
