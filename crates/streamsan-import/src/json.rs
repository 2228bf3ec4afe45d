//! An analysis for programs. The keys are described in `docs/schema/profile-1.json`.

use crate::analysis::{Analysis, Device, Engine, Meanwhile, Pageable, Stream, Wait};
use crate::place::Place;
use crate::words::rate;
use serde_json::{Map, Value, json};

/// The analyses of some files, as one document. `tool`: name and version of the program.
pub fn json<'a>(tool: &str, profiles: impl IntoIterator<Item = (&'a str, &'a Analysis)>) -> String {
    let profiles: Vec<Value> = profiles.into_iter().map(|(file, analysis)| profile(file, analysis)).collect();
    let document = json!({ "format_version": 1, "tool": tool, "profiles": profiles });
    format!("{document:#}\n")
}

fn profile(file: &str, analysis: &Analysis) -> Value {
    let bound = analysis.bound;
    let host = &analysis.host;
    let calls: Vec<Value> = host
        .calls
        .iter()
        .map(|(name, count, time)| json!({ "call": name, "count": count, "time_ns": time }))
        .collect();
    json!({
        "file": file,
        "took_ns": analysis.took,
        "steps": analysis.steps,
        "bound": { "by": key(bound.engine), "device": bound.device, "busy_ns": bound.busy },
        "most_gain_ns": analysis.gain(),
        "host": {
            "busy_ns": host.busy,
            "waiting_ns": host.waiting,
            "unexplained_ns": host.unexplained,
            "calling_ns": host.calling,
            "calls": calls,
        },
        "devices": analysis.devices.iter().map(device).collect::<Vec<_>>(),
        "waits": analysis.waits.iter().map(wait).collect::<Vec<_>>(),
        "host_was_in": analysis.meanwhile.iter().map(meanwhile).collect::<Vec<_>>(),
        "pageable_copies": analysis.pageable.iter().map(pageable).collect::<Vec<_>>(),
        "has_stacks": analysis.has_stacks,
        "unread_events": analysis.unread,
        "events_without_time": analysis.timeless,
    })
}

fn device(device: &Device) -> Value {
    let mut engines = Map::new();
    for (engine, busy) in &device.engines {
        engines.insert(key(*engine).to_owned(), json!(busy));
    }
    let idle = &device.idle;
    json!({
        "device": device.number,
        "name": device.name,
        "busy_ns": device.busy,
        "engines_ns": engines,
        "copying_ns": device.copying,
        "copying_beside_compute_ns": device.copying_beside_compute,
        "copying_both_ways_ns": device.both_ways,
        "streams_together_ns": device.together,
        "idle_ns": idle.total(),
        "idle_because_ns": {
            "waiting": idle.waiting,
            "after_wait": idle.after_wait,
            "issuing": idle.issuing,
            "starting": idle.starting,
            "nothing_issued": idle.nothing,
        },
        "streams": device.streams.iter().map(stream).collect::<Vec<_>>(),
    })
}

fn stream(stream: &Stream) -> Value {
    let copies: Vec<Value> = stream
        .copies
        .iter()
        .map(|one| {
            json!({
                "direction": one.direction,
                "memory": one.memory,
                "count": one.count,
                "bytes": one.bytes,
                "time_ns": one.time,
                "gigabytes_per_second": rate(one.bytes, one.time),
            })
        })
        .collect();
    json!({
        "stream": stream.number,
        "busy_ns": stream.busy,
        "kernels": stream.kernels,
        "computing_ns": stream.computing,
        "copies": copies,
    })
}

fn wait(wait: &Wait) -> Value {
    json!({
        "call": wait.call,
        "count": wait.count,
        "waited_ns": wait.waited,
        "idle_ns": wait.idle,
        "cost_ns": wait.cost,
        "place": place(&wait.place),
    })
}

fn meanwhile(one: &Meanwhile) -> Value {
    json!({ "time_ns": one.time, "place": place(&one.place) })
}

fn pageable(one: &Pageable) -> Value {
    json!({
        "direction": one.direction,
        "count": one.count,
        "bytes": one.bytes,
        "time_ns": one.time,
        "calling_ns": one.calling,
        "place": place(&one.place),
    })
}

fn place(place: &Place) -> Value {
    let function = place
        .function
        .as_ref()
        .map(|function| json!({ "file": function.file, "first_line": function.line, "name": function.name }));
    json!({ "function": function, "callee": place.callee, "operator": place.operator, "lines": place.lines })
}

fn key(engine: Engine) -> &'static str {
    match engine {
        Engine::Up => "copies_up",
        Engine::Down => "copies_down",
        Engine::Between => "copies_between_devices",
        Engine::Collectives => "collectives",
        Engine::Compute => "compute",
        Engine::Host => "host",
    }
}
