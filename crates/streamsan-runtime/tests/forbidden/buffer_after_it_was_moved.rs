//! A buffer is used after it was moved into an operation.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut buffer = device.buffer::<f32>(4, &stream)?;
    let host = device.host_buffer::<f32>(4)?;
    stream.operation("owner").run(move |_| drop(buffer))?;
    stream.upload(&host, &mut buffer)?;
    Ok(())
}
