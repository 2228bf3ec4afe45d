//! The page of HTML: what is drawn where, and that nothing of a file can become a part of it.

mod support;

use serde_json::json;
use streamsan_import::{analyse, html, read};
use support::{Written, recorded};

fn page(written: &Written, file: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("profile.json");
    std::fs::write(&path, written.text()).unwrap();
    let profile = read(&path).unwrap();
    html("streamsan 0", [(file, &profile, &analyse(&profile))])
}

fn bars(page: &str) -> Vec<&str> {
    page.lines().filter(|line| line.starts_with("<rect")).collect()
}

#[test]
fn bars_lie_where_they_ran() {
    let mut written = Written::default();
    written.issued("Memcpy HtoD (Pinned -> Device)", (15.0, 35.0), 0, 13);
    written.issued("gemm", (60.0, 110.0), 0, 7);
    written.event("cuda_runtime", "cudaDeviceSynchronize", (70.0, 120.0), &json!({}));
    let page = page(&written, "p.json");
    // The window is 10 to 110: each microsecond is 100 wide.
    assert_eq!(
        bars(&page),
        [
            "<rect class=\"wait\" x=\"6000.00\" y=\"3\" width=\"4000.00\" height=\"16\"><title>cudaDeviceSynchronize: 50.0 us at 60.0 us</title></rect>",
            "<rect class=\"kernel\" x=\"5000.00\" y=\"25\" width=\"5000.00\" height=\"16\"><title>gemm: 50.0 us at 50.0 us</title></rect>",
            "<rect class=\"up\" x=\"500.00\" y=\"47\" width=\"2000.00\" height=\"16\"><title>Memcpy HtoD (Pinned -&gt; Device): 20.0 us at 5.00 us</title></rect>",
        ]
    );
    assert!(page.contains("<div>host, waits</div><div>stream 7</div><div>stream 13</div>"), "{page}");
}

#[test]
fn many_operations_are_drawn_together() {
    let mut written = Written::default();
    for index in 0..60_000 {
        let at = 10.0 + f64::from(index);
        let arguments = json!({ "args": { "device": 0, "stream": 7 + index % 2, "correlation": 0 } });
        written.event("kernel", "small", (at, at + 0.9), &arguments);
    }
    let page = page(&written, "p.json");
    assert!(bars(&page).len() <= 2 * 4001, "{}", bars(&page).len());
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert!(page.contains(" more: "), "bars say how many they are");
}

#[test]
fn names_are_text() {
    let mut written = Written::default();
    written.issued("</title><script>alert(1)</script>\u{202e}\u{7}", (10.0, 20.0), 0, 7);
    let page = page(&written, "<b>\".json");
    assert!(!page.contains("<script>alert") && !page.contains("<b>") && !page.contains('\u{202e}'), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)"), "{page}");
    assert_eq!(page.matches("<script>").count(), 1);
}

#[test]
fn recorded_profiles_have_all_their_streams() {
    let profile = read(&recorded("prefetcher.json")).unwrap();
    let page = html("streamsan 0", [("prefetcher.json", &profile, &analyse(&profile))]);
    assert!(page.contains("<div>stream 7</div><div>stream 33</div>"), "{page}");
    assert!(
        page.contains("class=\"up\"") && page.contains("class=\"down\"") && page.contains("class=\"kernel\"")
    );
}
