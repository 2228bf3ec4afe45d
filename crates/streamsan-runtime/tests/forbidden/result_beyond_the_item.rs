//! The elements of a slot are kept beyond the item, when the slot has others.

use streamsan_runtime::{CpuOptions, Device, Pipeline, PipelineOptions};

fn main() {
    let device = Device::cpu(&CpuOptions::default());
    let options = PipelineOptions { item: 4, memory: 64, slots: Some(2), ..PipelineOptions::default() };
    let mut pipeline = Pipeline::<f32>::new(&device, &options).unwrap();
    let mut kept: Vec<&[f32]> = Vec::new();
    let items = (0..9).map(|_| Ok::<_, String>([0.0; 4]));
    pipeline.run(items, |_, _| Ok(()), |_, result| kept.extend(result.ok()));
    println!("{kept:?}");
}
