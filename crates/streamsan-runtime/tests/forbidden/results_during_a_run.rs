//! A result is read while the pipeline writes to it.

use streamsan_runtime::{CpuOptions, Device, Error, HostBuffer, Pipeline, PipelineOptions};

fn main() -> Result<(), Error> {
    let device = Device::cpu(&CpuOptions::default());
    let options = PipelineOptions { item: 4, memory: 64, slots: Some(2), ..PipelineOptions::default() };
    let mut pipeline = Pipeline::<f32>::new(&device, &options).unwrap();
    let items: Vec<HostBuffer<f32>> = vec![device.host_buffer(4)?];
    let mut results: Vec<HostBuffer<f32>> = vec![device.host_buffer(4)?];
    let first = results[0].read()?;
    pipeline.run_in_place(&items, &mut results, |_, _| Ok(()))?;
    println!("{}", first[0]);
    Ok(())
}
