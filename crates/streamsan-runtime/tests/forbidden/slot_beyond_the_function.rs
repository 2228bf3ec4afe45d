//! The buffer of a slot is kept beyond the function.

use streamsan_runtime::{Buffer, CpuOptions, Device, Pipeline, PipelineOptions};

fn main() {
    let device = Device::cpu(&CpuOptions::default());
    let options = PipelineOptions { item: 4, memory: 64, slots: Some(2), ..PipelineOptions::default() };
    let mut pipeline = Pipeline::<f32>::new(&device, &options).unwrap();
    let mut kept: Vec<&mut Buffer<f32>> = Vec::new();
    let items = (0..9).map(|_| Ok::<_, String>([0.0; 4]));
    let keep = |_: &_, buffer: &mut _| {
        kept.push(buffer);
        Ok(())
    };
    pipeline.run(items, keep, |_, _| {});
}
