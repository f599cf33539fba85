//! Locks: the system's, or those of a scheduler that tries interleavings.

#[cfg(not(shuttle))]
pub(super) use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic};

#[cfg(shuttle)]
pub(super) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic};

/// Locks. A thread that panicked with the lock held has left a state that is whole: states are written in one step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Lets others go on. A holder that lost its processor needs a moment to get it back.
pub(super) fn relax(tries: u32) {
    #[cfg(shuttle)]
    {
        let _ = tries;
        shuttle::thread::yield_now();
    }
    #[cfg(not(shuttle))]
    match tries {
        0..64 => std::hint::spin_loop(),
        64..1_024 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}
