//! Runs a program once: on real threads, or with `--features shuttle` in a schedule that Shuttle draws from the seed,
//! where any thread may overtake any other at every lock.

/// How many programs, if nobody says: a schedule of Shuttle takes no change of threads.
pub const PROGRAMS: u64 = if cfg!(feature = "shuttle") { 2_000 } else { 300 };

/// Runs it.
pub fn scheduled(seed: u64, work: impl Fn() + Send + Sync + 'static) {
    #[cfg(feature = "shuttle")]
    {
        let scheduler = shuttle::scheduler::RandomScheduler::new_from_seed(seed, 1);
        shuttle::Runner::new(scheduler, shuttle::Config::default()).run(work);
    }
    #[cfg(not(feature = "shuttle"))]
    {
        let _ = seed;
        work();
    }
}

/// The seed of the back end's own delays: none where Shuttle decides.
pub fn delays(seed: u64) -> Option<u64> {
    (!cfg!(feature = "shuttle")).then_some(seed)
}
