//! What recording costs: processor time of the calling thread for each call, through the C table, with one thread and
//! with two. `cargo bench -p streamsan-record`
//!
//! Many short rounds; the least and the median of them are printed, so that other work on the machine shows in
//! neither unless it fills every round. Processor time, because wall time says little on a busy machine.

use std::sync::Barrier;
use std::time::Duration;

use streamsan_record::table::{RawAccess, RecorderTable, TorchCallback};
use streamsan_record::{Library, Recorder, StartOptions, recorder, start, table};
use streamsan_trace::{CaptureKind, DeviceId, MemorySpace};

const ROUNDS: usize = 60;
const CALLS: u32 = 5_000;
/// Memory of a thread: this many blocks of a page.
const BLOCKS: u64 = 1000;
const BLOCK: u64 = 4096;
const MEMORY: u64 = 0x70_0000_0000;

/// What a thread works with.
struct Worker {
    table: &'static RecorderTable,
    recorder: &'static Recorder,
    stream: u64,
    event: u64,
    memory: u64,
    label: u32,
}

impl Worker {
    fn new(index: u64) -> Self {
        let (table, recorder) = (table(), recorder().expect("recording"));
        let worker = Self {
            table,
            recorder,
            stream: 0x5000 + index,
            event: 0x9000 + index,
            memory: MEMORY + index * (1 << 30),
            // SAFETY: the text lives through the call.
            label: unsafe { (table.intern_string)("aten::mul".as_ptr(), 9) },
        };
        recorder.stream_created(worker.stream, 0, false, 0);
        recorder.memory_allocated(MemorySpace::Device(DeviceId(0)), worker.memory, 1 << 30);
        for block in 0..BLOCKS {
            worker.callback(TorchCallback::MemoryAllocation, worker.memory + block * BLOCK, worker.stream);
            worker.size(worker.memory + block * BLOCK);
        }
        worker
    }

    fn callback(&self, callback: TorchCallback, a: u64, b: u64) {
        // SAFETY: the table's functions may be called from any thread.
        unsafe { (self.table.torch_callback)(callback as u32, a, b) }
    }

    fn size(&self, address: u64) {
        // SAFETY: as above.
        unsafe { (self.table.block_size)(address, BLOCK) }
    }

    /// An operation, with the two calls around it that say where it is.
    fn operation(&self, turn: u64, accesses: u64, offset: u64) {
        let access = |index: u64| RawAccess {
            address: self.memory + ((turn * 7 + index * 131) % BLOCKS) * BLOCK + offset,
            length: BLOCK - offset,
            shape: 0,
            mode: 0,
            argument: 0,
            reserved: 0,
        };
        let all = [access(0), access(1), access(2)];
        // SAFETY: the accesses live through the call.
        unsafe {
            (self.table.set_context)(0, 0, self.label);
            (self.table.operation)(self.stream, 0, 0, 0, all.as_ptr(), accesses as usize);
            (self.table.set_context)(0, 0, 0);
        }
    }

    fn record(&self) {
        self.recorder.event_recorded(self.event, self.stream, 0, Library::TorchPython);
        self.callback(TorchCallback::EventRecord, self.event, self.stream);
    }

    fn wait(&self) {
        self.recorder.event_waited(self.stream, 0, self.event, Library::TorchPython);
        self.callback(TorchCallback::EventWait, self.event, self.stream);
    }

    fn allocate(&self, turn: u64) {
        let address = self.memory + (BLOCKS + turn % 100) * BLOCK;
        self.callback(TorchCallback::MemoryAllocation, address, self.stream);
        self.size(address);
        self.callback(TorchCallback::MemoryDeallocation, address, 0);
    }
}

/// Processor time of the calling thread.
fn processor_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives through the call.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Nanoseconds a call, least and median, where `threads` threads do the same.
fn measure(workers: &[Worker], threads: usize, work: &Work) -> (f64, f64) {
    let barrier = Barrier::new(threads);
    let mut rounds: Vec<f64> = std::thread::scope(|scope| {
        let each = workers.iter().take(threads).map(|worker| {
            let barrier = &barrier;
            scope.spawn(move || {
                let round = |_| {
                    barrier.wait();
                    let begin = processor_time();
                    for turn in 0..u64::from(CALLS) {
                        work(worker, turn);
                    }
                    processor_time().saturating_sub(begin).as_secs_f64() * 1e9 / f64::from(CALLS)
                };
                (0..ROUNDS).map(round).collect::<Vec<_>>()
            })
        });
        let each: Vec<_> = each.collect();
        each.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    rounds.sort_by(f64::total_cmp);
    (rounds[0], rounds[rounds.len() / 2])
}

type Work = dyn Fn(&Worker, u64) + Sync;

fn main() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.sstrace");
    start(StartOptions { path, capture: CaptureKind::Virtual, devices: 1 }).expect("a new file");
    let workers: Vec<Worker> = (0..2).map(Worker::new).collect();
    let cases: [(&str, &Work); 6] = [
        ("operation without accesses", &|worker, turn| worker.operation(turn, 0, 0)),
        ("operation with 3 accesses, each from the start of a block", &|worker, turn| {
            worker.operation(turn, 3, 0);
        }),
        ("operation with 3 accesses, each inside a block", &|worker, turn| worker.operation(turn, 3, 64)),
        ("event record with its callback", &|worker, _| worker.record()),
        ("wait with its callback", &|worker, _| worker.wait()),
        ("memory handed out, sized and given back", &|worker, turn| worker.allocate(turn)),
    ];
    println!("| ns a call, least / median of {ROUNDS} rounds | 1 thread | 2 threads |\n| --- | --- | --- |");
    for (name, work) in cases {
        let [one, two] = [1, 2].map(|threads| measure(&workers, threads, work));
        println!("| {name} | {:.0} / {:.0} | {:.0} / {:.0} |", one.0, one.1, two.0, two.1);
    }
}
