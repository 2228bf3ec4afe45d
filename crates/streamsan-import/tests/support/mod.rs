//! Profiles that tests write.
#![allow(dead_code)]

use serde_json::{Value, json};
use std::path::PathBuf;
use streamsan_import::{Analysis, ImportError};

/// A profile as it is written by hand; times in microseconds.
#[derive(Default)]
pub struct Written(pub Vec<Value>);

impl Written {
    pub fn event(&mut self, category: &str, name: &str, (from, to): (f64, f64), more: &Value) -> &mut Self {
        let mut event = json!({ "ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": from, "dur": to - from });
        for (key, value) in more.as_object().expect("it is an object") {
            event[key] = value.clone();
        }
        self.0.push(event);
        self
    }

    pub fn call(&mut self, name: &str, span: (f64, f64), correlation: i64) -> &mut Self {
        self.event("cuda_runtime", name, span, &json!({ "args": { "correlation": correlation } }))
    }

    /// An operation on a device, with the call that issued it: 2 us, 5 us before.
    pub fn issued(&mut self, name: &str, span: (f64, f64), device: i64, stream: i64) -> &mut Self {
        let correlation = i64::try_from(self.0.len() + 1).expect("there are few");
        let category = if name.starts_with("Memcpy") { "gpu_memcpy" } else { "kernel" };
        let call = if category == "kernel" { "cudaLaunchKernel" } else { "cudaMemcpyAsync" };
        self.call(call, (span.0 - 5.0, span.0 - 3.0), correlation);
        let bytes = if category == "kernel" { Value::Null } else { json!(1_000_000) };
        let arguments =
            json!({ "device": device, "stream": stream, "correlation": correlation, "bytes": bytes });
        self.event(category, name, span, &json!({ "pid": device, "tid": stream, "args": arguments }))
    }

    pub fn text(&self) -> String {
        json!({ "schemaVersion": 1, "deviceProperties": [{ "id": 0, "name": "NVIDIA H200" }], "traceEvents": self.0 })
            .to_string()
    }

    pub fn analysis(&self) -> Analysis {
        analysis(self.text().as_bytes()).unwrap_or_else(|error| panic!("{error}"))
    }
}

/// Reads what a file with these bytes says.
pub fn analysis(bytes: &[u8]) -> Result<Analysis, ImportError> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let path = folder.path().join("profile.json");
    std::fs::write(&path, bytes).expect("files can be written");
    streamsan_import::read(&path).map(|profile| streamsan_import::analyse(&profile))
}

/// A recorded profile of the repository.
pub fn recorded(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/profiles").join(name)
}
