//! Two operations that are not submitted yet change the same buffer.

use streamsan_runtime::{CpuOptions, Device, Error};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let stream = device.stream("s")?;
    let mut buffer = device.buffer::<f32>(4, &stream)?;
    let (mut one, mut two) = (stream.operation("one"), stream.operation("two"));
    let (first, second) = (one.update(&mut buffer), two.update(&mut buffer));
    two.run(move |memory| memory.slice_mut(second)[0] = 2.0)?;
    one.run(move |memory| memory.slice_mut(first)[0] = 1.0)?;
    Ok(())
}
