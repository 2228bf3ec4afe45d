//! The part of SARIF 2.1.0 that is written here, in its own words.

use serde::Serialize;
use std::collections::BTreeMap;

/// What the format calls a log.
#[derive(Serialize)]
pub(super) struct SarifLog<'a> {
    #[serde(rename = "$schema")]
    pub(super) schema: &'static str,
    pub(super) version: &'static str,
    pub(super) runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run<'a> {
    pub(super) tool: Tool<'a>,
    pub(super) invocations: [Invocation; 1],
    pub(super) original_uri_base_ids: BTreeMap<&'static str, BaseUri>,
    pub(super) column_kind: &'static str,
    pub(super) results: Vec<Outcome<'a>>,
}

#[derive(Serialize)]
pub(super) struct Tool<'a> {
    pub(super) driver: Driver<'a>,
}

#[derive(Serialize)]
pub(super) struct Driver<'a> {
    pub(super) name: &'a str,
    pub(super) version: &'a str,
    pub(super) rules: Vec<Descriptor>,
}

/// A rule.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) id: &'static str,
    pub(super) name: &'static str,
    pub(super) short_description: Message,
    pub(super) help: Help,
    pub(super) default_configuration: Configuration,
}

#[derive(Serialize)]
pub(super) struct Help {
    pub(super) text: String,
    pub(super) markdown: &'static str,
}

#[derive(Serialize)]
pub(super) struct Configuration {
    pub(super) level: &'static str,
}

#[derive(Clone, Serialize)]
pub(super) struct Message {
    pub(super) text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Invocation {
    pub(super) execution_successful: bool,
    pub(super) tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
pub(super) struct Notification {
    pub(super) level: &'static str,
    pub(super) message: Message,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) descriptor: Option<Reference>,
}

#[derive(Serialize)]
pub(super) struct Reference {
    pub(super) id: &'static str,
}

#[derive(Serialize)]
pub(super) struct BaseUri {
    pub(super) description: Message,
}

/// What the format calls a result.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Outcome<'a> {
    pub(super) rule_id: &'a str,
    pub(super) rule_index: usize,
    pub(super) level: &'a str,
    pub(super) message: Message,
    pub(super) locations: [Location; 1],
    pub(super) related_locations: Vec<Location>,
    pub(super) code_flows: [CodeFlow; 1],
    pub(super) partial_fingerprints: Fingerprints,
    pub(super) occurrence_count: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) fixes: Vec<Repair>,
    pub(super) properties: Properties<'a>,
}

#[derive(Serialize)]
pub(super) struct Fingerprints {
    /// The key that GitHub's code scanning compares.
    #[serde(rename = "primaryLocationLineHash")]
    pub(super) line_hash: String,
    #[serde(rename = "streamsan/v1")]
    pub(super) own: String,
}

#[derive(Serialize)]
pub(super) struct Properties<'a> {
    pub(super) id: String,
    pub(super) trace: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hazard: Option<&'a str>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[allow(clippy::struct_field_names)] // The format's name.
    pub(super) physical_location: Option<PhysicalLocation>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) logical_locations: Vec<LogicalLocation>,
    pub(super) message: Message,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogicalLocation {
    pub(super) fully_qualified_name: String,
    pub(super) kind: &'static str,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PhysicalLocation {
    pub(super) artifact_location: ArtifactLocation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) region: Option<Region>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactLocation {
    pub(super) uri: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uri_base_id: Option<&'static str>,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Region {
    pub(super) start_line: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start_column: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end_line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) end_column: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CodeFlow {
    pub(super) thread_flows: Vec<ThreadFlow>,
}

#[derive(Serialize)]
pub(super) struct ThreadFlow {
    pub(super) id: String,
    pub(super) locations: Vec<Step>,
}

/// What the format calls a thread flow location.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Step {
    pub(super) location: Location,
    pub(super) execution_order: u64,
    pub(super) importance: &'static str,
}

/// What the format calls a fix.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Repair {
    pub(super) description: Message,
    pub(super) artifact_changes: [ArtifactChange; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ArtifactChange {
    pub(super) artifact_location: ArtifactLocation,
    pub(super) replacements: [Replacement; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Replacement {
    pub(super) deleted_region: Region,
    pub(super) inserted_content: Message,
}
