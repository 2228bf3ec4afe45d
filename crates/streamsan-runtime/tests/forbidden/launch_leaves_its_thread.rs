//! The place where kernels are launched is handed to another thread.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    // SAFETY: nothing is enqueued.
    let _ = unsafe {
        stream.operation("launch").launch::<Error>(|launch| {
            std::thread::scope(|scope| {
                scope.spawn(|| println!("{:?}", launch.stream()));
            });
            Ok(())
        })
    }?;
    Ok(())
}
