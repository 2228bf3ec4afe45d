//! Files that are not what they should be: an error with a place, never a panic, never memory without bound.

mod support;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::Write;
use streamsan_import::ImportError;
use support::{Written, analysis, recorded};

const UP: &str = "Memcpy HtoD (Pinned -> Device)";

fn refused(bytes: &[u8]) -> String {
    analysis(bytes).map(|_| ()).expect_err("it is no profile").to_string()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_is_no_profile_is_named_with_its_place() {
    for (bytes, wanted) in [
        ("", "the file is empty, at byte 0"),
        ("{", "the file ends in the middle of the profile, at byte 1"),
        ("{}", "there are no `traceEvents` in it, at byte 2"),
        (
            "[]",
            "invalid type: sequence, expected an object with `traceEvents`, as torch.profiler writes it, at byte 1",
        ),
        ("{\"findings\": [1]}", "there are no `traceEvents` in it, at byte 17"),
        ("{\"traceEvents\": 3}", "invalid type: integer `3`, expected a list of events, at byte 18"),
        ("{\"traceEvents\": [3]}", "nothing ran on a GPU in this profile"),
        ("{\"traceEvents\": [{\"ph\": }]}", "no JSON: expected value, at byte 25"),
        ("{\"traceEvents\": []} x", "no JSON: trailing characters, at byte 21"),
        ("{\"traceEvents\": []}", "nothing ran on a GPU in this profile"),
    ] {
        assert_eq!(refused(bytes.as_bytes()), wanted, "{bytes}");
    }
    assert_eq!(
        refused(&packed(b"{\"traceEvents\": [")),
        "the file ends in the middle of the profile, at byte 17 of the unpacked text"
    );
}

#[test]
fn a_profile_that_was_cut_says_where() {
    let whole = std::fs::read(recorded("activation_offload.json.gz")).unwrap();
    let said = refused(&whole[..whole.len() / 2]);
    assert!(said.starts_with("it cannot be unpacked: ") && said.ends_with(" of the unpacked text"), "{said}");
    let text = std::fs::read(recorded("loader_compute_bad.json")).unwrap();
    let said = refused(&text[..20_000]);
    assert_eq!(said, "the file ends in the middle of the profile, at byte 20000");
}

#[test]
fn nothing_on_a_gpu_is_no_clean_bill() {
    let mut written = Written::default();
    written.event("cpu_op", "aten::add", (1.0, 2.0), &serde_json::json!({}));
    assert_eq!(analysis(written.text().as_bytes()).unwrap_err(), ImportError::Nothing { calls: 0 });
    written.call("cudaLaunchKernel", (3.0, 4.0), 1);
    let error = analysis(written.text().as_bytes()).unwrap_err();
    assert_eq!(error, ImportError::Nothing { calls: 1 });
    assert!(error.help().unwrap().contains("ProfilerActivity.CUDA"));
}

#[test]
fn other_devices_are_refused() {
    for (category, name, wanted) in [
        ("cuda_runtime", "hipLaunchKernel", "a profile of a HIP (ROCm) device: only CUDA is supported"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "a profile of a XPU device: only CUDA is supported"),
    ] {
        let mut written = Written::default();
        written.event(category, name, (1.0, 2.0), &serde_json::json!({})).issued("k", (10.0, 20.0), 0, 0);
        assert_eq!(refused(written.text().as_bytes()), wanted);
    }
}

#[test]
fn odd_fields_spoil_nothing() {
    let text = r#"{"traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "a", "ts": "10", "dur": 5, "args": {"device": "0", "stream": null, "correlation": [1]}},
        {"ph": "X", "cat": "kernel", "name": null, "ts": 10, "dur": -5, "args": {}},
        {"ph": "X", "cat": "kernel", "name": "b", "ts": 1e300, "dur": 5, "args": {}},
        {"ph": "X", "cat": "kernel", "name": "c", "dur": 5, "args": {}},
        {"ph": "X", "cat": "kernel", "cat": "from_elsewhere", "ts": 1, "dur": 1},
        {"ph": 7, "cat": {"x": 1}, "args": {"bytes": {}}},
        {}
    ], "deviceProperties": [{"id": "x"}]}"#;
    let analysis = analysis(text.as_bytes()).unwrap();
    assert_eq!((analysis.took, analysis.timeless), (5_000, 3));
    assert_eq!(analysis.unread.get("from_elsewhere"), Some(&1));
    assert_eq!((analysis.devices[0].number, analysis.devices[0].streams[0].number), (0, -1));
    let said = streamsan_import::text("odd.json", &analysis);
    assert!(said.contains("note: events that were not read: from_elsewhere (1)\n"), "{said}");
    assert!(said.contains("note: 3 events without a time\n"), "{said}");
}

/// What stands where something else is expected.
const ODD: [&str; 8] = ["null", "true", "-1", "2.5", "\"x\"", "[]", "[[{}], 1]", "{\"a\": {\"b\": [1]}}"];

#[test]
fn anything_may_stand_anywhere_in_an_event() {
    let good = r#"{"ph": "X", "cat": "kernel", "name": "a", "ts": 10, "dur": 5, "args": {"device": 0, "stream": 7}}"#;
    for odd in ODD {
        let with_arguments =
            good.replace(r#"{"device": 0, "stream": 7}"#, odd).replace(r#""ph""#, r#""pid": 0, "ph""#);
        for text in [
            format!(r#"{{"traceEvents": [{good}, {odd}]}}"#),
            format!(r#"{{"traceEvents": [{odd}, {with_arguments}]}}"#),
            format!(r#"{{"deviceProperties": {odd}, "traceEvents": [{good}]}}"#),
            format!(
                r#"{{"deviceProperties": [{odd}, {{"id": 0, "name": {odd}}}], "traceEvents": [{good}]}}"#
            ),
            format!(r#"{{"schemaVersion": {odd}, "traceEvents": [{good}], "traceName": {odd}}}"#),
        ] {
            let analysis = analysis(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!((analysis.took, analysis.devices[0].number), (5_000, 0), "{text}");
        }
    }
    let text = format!(
        r#"{{"traceEvents": [null, [], {{"ph": "M", "args": null}}, {{"ph": "M", "args": [1]}}, {good}]}}"#
    );
    let analysis = analysis(text.as_bytes()).unwrap();
    assert_eq!(analysis.unread.get("(no object)"), Some(&2));
    assert_eq!(analysis.unread.get("(arguments that are no object)"), Some(&1));
    let said = streamsan_import::text("odd.json", &analysis);
    assert!(
        said.contains(
            "note: events that were not read: (arguments that are no object) (1), (no object) (2)\n"
        ),
        "{said}"
    );
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_profile() {
    let mut written = Written::default();
    written.issued("gemm", (10.0, 20.0), 0, 7);
    let marked = [b"\xef\xbb\xbf".as_slice(), written.text().as_bytes()].concat();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    for bytes in [packed(&marked), marked] {
        assert_eq!(analysis(&bytes).unwrap().took, 15_000);
        std::fs::write(&path, bytes).unwrap();
        assert!(streamsan_import::is_profile(&path));
    }
    // Places are those of the file.
    assert_eq!(refused(b"\xef\xbb\xbf{]"), "no JSON: key must be a string, at byte 5");
}

#[test]
fn small_files_with_much_in_them_are_stopped() {
    let string = packed(&[b"{\"traceEvents\": [{\"name\": \"".as_slice(), &vec![b'x'; 20 << 20]].concat());
    assert!(string.len() < 1 << 20);
    let said = refused(&string);
    assert!(said.starts_with("it cannot be unpacked: a string is longer than 16 MiB, at byte "), "{said}");
    let said = refused(&packed(&[b"{\"a\": ".as_slice(), &vec![b'['; 1 << 20]].concat()));
    assert!(said.contains("nested more than 256 deep"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn any_damage_is_borne(at in 0usize..40_000, byte: u8, cut in 0usize..45_000) {
        let mut bytes = std::fs::read(recorded("loader_compute_bad.json")).unwrap();
        bytes[at] = byte;
        for bytes in [&bytes[..], &bytes[..cut.min(bytes.len())]] {
            match analysis(bytes) {
                Ok(analysis) => {
                    prop_assert!(streamsan_import::text("x", &analysis).contains("Bound by "));
                    let json = streamsan_import::json("x", [("x", &analysis)]);
                    prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok());
                }
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }

    #[test]
    fn any_times_are_borne(times in prop::collection::vec((any::<f64>(), any::<f64>(), -5i64..5), 1..20)) {
        let mut written = Written::default();
        for (from, length, id) in times {
            written.issued(UP, (from, from + length), id, id);
            written.call("cudaStreamSynchronize", (from, from + length), id);
        }
        if let Ok(analysis) = analysis(written.text().as_bytes()) {
            prop_assert!(streamsan_import::text("x", &analysis).contains("Bound by "));
        }
    }
}
