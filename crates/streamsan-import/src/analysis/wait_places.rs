//! The waits of the host, by place.

use super::host::HostTimes;
use super::idle::Causes;
use super::{Wait, length};
use crate::names::NameId;
use crate::place::{Place, places};
use crate::profile::Profile;
use std::collections::BTreeMap;

pub(super) fn grouped(profile: &Profile, host: &HostTimes<'_>, causes: &Causes<'_>) -> Vec<Wait> {
    let spans: Vec<_> = host.waits.iter().map(|wait| (wait.span, wait.thread)).collect();
    let mut groups: BTreeMap<(NameId, Place), Wait> = BTreeMap::new();
    for ((wait, place), (idle, cost)) in host.waits.iter().zip(places(profile, &spans)).zip(&causes.after) {
        let group = groups.entry((wait.name, place.clone())).or_insert_with(|| Wait {
            call: profile.name(wait.name).to_owned(),
            place,
            count: 0,
            waited: 0,
            idle: 0,
            cost: 0,
        });
        group.count += 1;
        group.waited = group.waited.saturating_add(length(wait.span));
        group.idle = group.idle.saturating_add(*idle);
        group.cost = group.cost.saturating_add(*cost);
    }
    let mut groups: Vec<Wait> = groups.into_values().collect();
    groups.sort_by(|one, other| {
        let key = |wait: &Wait| (wait.cost, wait.idle, wait.waited);
        key(other).cmp(&key(one)).then_with(|| one.place.cmp(&other.place))
    });
    groups
}
