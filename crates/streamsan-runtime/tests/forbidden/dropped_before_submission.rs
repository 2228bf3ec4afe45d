//! A buffer is dropped between its declaration and the submission.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut buffer = device.buffer::<f32>(4, &stream)?;
    let mut operation = stream.operation("late");
    let token = operation.update(&mut buffer);
    drop(buffer);
    operation.run(move |memory| memory.slice_mut(token)[0] = 1.0)?;
    Ok(())
}
