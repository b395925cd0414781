//! Nodes and pods of Kubernetes, as `kubectl get nodes --output json` and `kubectl get pods --all-namespaces --output
//! json` print them.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value as Json;

use super::{Availability, Held, Managed, ManagedJob, ManagedNode, parse};
use iswitch_study::StudyError;

/// Name of the resource under which device plugins advertise NVIDIA GPUs.
pub const GPU_RESOURCE: &str = "nvidia.com/gpu";

/// Labels and annotations that name the group of a pod; all pods of a group start together. The names are those of
/// Kueue, the Coscheduling plugin, Volcano, Kubeflow's trainers, `JobSet`, and Kubernetes' own jobs.
const GROUPS: [&str; 8] = [
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "scheduling.k8s.io/group-name",
    "training.kubeflow.org/job-name",
    "jobset.sigs.k8s.io/jobset-name",
    "batch.kubernetes.io/job-name",
    "job-name",
];

#[derive(Deserialize)]
struct List<T> {
    items: Option<Vec<T>>,
}

#[derive(Deserialize)]
struct Node {
    metadata: Metadata,
    #[serde(default)]
    spec: NodeSpec,
    #[serde(default)]
    status: NodeStatus,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    labels: HashMap<String, String>,
    #[serde(default)]
    annotations: HashMap<String, String>,
}

#[derive(Default, Deserialize)]
struct NodeSpec {
    /// Whether the node is cordoned.
    #[serde(default)]
    unschedulable: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeStatus {
    #[serde(default)]
    capacity: HashMap<String, Json>,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    spec: PodSpec,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodSpec {
    node_name: Option<String>,
    /// Time limit of the pod, in seconds.
    active_deadline_seconds: Option<f64>,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    scheduling_gates: Vec<Json>,
}

#[derive(Deserialize)]
struct Container {
    #[serde(default)]
    resources: Resources,
}

#[derive(Default, Deserialize)]
struct Resources {
    #[serde(default)]
    limits: HashMap<String, Json>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStatus {
    #[serde(default)]
    phase: String,
    /// Time at which the pod started, in UTC and in RFC 3339 format.
    start_time: Option<String>,
    #[serde(default)]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStatus {
    #[serde(default)]
    restart_count: u32,
}

/// Reads the files that list the nodes and the pods. `resource` is the name of the GPU resource, usually
/// [`GPU_RESOURCE`], and `now` is the time at which the files were written, in seconds since the Unix epoch. All pods
/// of a group form one job.
///
/// # Errors
/// Fails if a file cannot be read, an entry is invalid, or a pod runs on an unknown node. The error names the file, the
/// entry and the field.
pub fn read_kubernetes(nodes: &Path, pods: &Path, resource: &str, now: f64) -> Result<Managed, StudyError> {
    let mut managed = read_nodes(nodes, resource)?.check().map_err(|error| StudyError::file(nodes, error))?;
    let list: List<Pod> = parse(pods)?;
    let items = list.items.ok_or_else(|| missing(pods, "pods --all-namespaces"))?;
    let known = managed.by_name();
    let mut groups: BTreeMap<String, Group> = BTreeMap::new();
    for (at, pod) in items.iter().enumerate() {
        add_pod(&mut groups, &known, pod, resource, now)
            .map_err(|reason| StudyError::file(pods, format!("items[{at}].{reason}")))?;
    }
    for (id, group) in groups {
        group.add_to(&mut managed, id);
    }
    Ok(managed)
}

fn missing(path: &Path, what: &str) -> StudyError {
    let expected = format!("the output of kubectl get {what} --output json");
    StudyError::file(path, format!("items is missing, expected {expected}"))
}

fn read_nodes(path: &Path, resource: &str) -> Result<Managed, StudyError> {
    let list: List<Node> = parse(path)?;
    let mut managed = Managed::default();
    for (at, node) in list.items.ok_or_else(|| missing(path, "nodes"))?.into_iter().enumerate() {
        let gpus = quantity(&node.status.capacity, resource)
            .map_err(|reason| StudyError::file(path, format!("items[{at}].status.capacity.{reason}")))?;
        if gpus == 0 {
            continue;
        }
        let is_ready = node.status.conditions.iter().any(|it| it.kind == "Ready" && it.status == "True");
        let availability = match () {
            () if !is_ready => Availability::Down,
            () if node.spec.unschedulable => Availability::Draining,
            () => Availability::Up,
        };
        managed.nodes.push(ManagedNode { name: node.metadata.name, gpus, in_use: None, availability });
    }
    Ok(managed)
}

/// Returns the number of GPUs listed in a map of resource quantities. Extended resources are whole numbers, usually
/// given as strings.
fn quantity(resources: &HashMap<String, Json>, resource: &str) -> Result<usize, String> {
    let Some(value) = resources.get(resource) else { return Ok(0) };
    let gpus = match value {
        Json::String(text) => text.parse().ok(),
        other => other.as_u64().and_then(|gpus| usize::try_from(gpus).ok()),
    };
    gpus.ok_or_else(|| format!("{resource} is {value}, expected a whole number of GPUs"))
}

/// Pods that start together.
#[derive(Default)]
struct Group {
    /// GPUs held by the pods that are assigned to a node.
    on: Vec<Held>,
    /// Number of GPUs that the waiting pods request.
    waiting: usize,
    is_gated: bool,
    limit: Option<f64>,
    running_for: f64,
    restarts: u32,
}

fn add_pod(
    groups: &mut BTreeMap<String, Group>,
    known: &HashMap<String, usize>,
    pod: &Pod,
    resource: &str,
    now: f64,
) -> Result<(), String> {
    if matches!(pod.status.phase.as_str(), "Succeeded" | "Failed") {
        return Ok(());
    }
    let mut gpus = 0_usize;
    for (at, container) in pod.spec.containers.iter().enumerate() {
        let own = quantity(&container.resources.limits, resource);
        let own = own.map_err(|reason| format!("spec.containers[{at}].resources.limits.{reason}"))?;
        gpus = gpus.saturating_add(own);
    }
    if gpus == 0 {
        return Ok(());
    }
    let Metadata { name, namespace, labels, annotations } = &pod.metadata;
    let group = GROUPS.iter().find_map(|key| labels.get(*key).or_else(|| annotations.get(*key)));
    let group = groups.entry(format!("{namespace}/{}", group.unwrap_or(name))).or_default();
    group.limit = pod.spec.active_deadline_seconds.or(group.limit);
    let restarts: u32 = pod.status.container_statuses.iter().map(|it| it.restart_count).sum();
    group.restarts = group.restarts.max(restarts);
    group.is_gated |= !pod.spec.scheduling_gates.is_empty();
    let Some(on) = &pod.spec.node_name else {
        group.waiting = group.waiting.saturating_add(gpus);
        return Ok(());
    };
    let node = *known.get(on).ok_or_else(|| {
        format!("spec.nodeName is {on}, expected one of the nodes with GPUs in the node file")
    })?;
    group.on.push(Held { node, count: gpus, gpus: Vec::new() });
    if let Some(start) = &pod.status.start_time {
        let start: Timestamp = start.parse().map_err(|_| {
            format!("status.startTime is {start:?}, expected a time such as 2026-11-20T03:12:44Z")
        })?;
        group.running_for = group.running_for.max(now - start.as_second() as f64);
    }
    Ok(())
}

impl Group {
    fn add_to(self, managed: &mut Managed, id: String) {
        let count: usize = self.on.iter().map(|held| held.count).sum();
        match () {
            // The scheduler may still start the pending pods, so the running pods of the job must keep their GPUs.
            () if count > 0 && self.waiting > 0 => {
                managed.leave_out("has both pending and running pods");
            }
            () if count == 0 && self.is_gated => {
                managed.leave_out("has scheduling gates");
                return;
            }
            () => {}
        }
        managed.jobs.push(ManagedJob {
            id,
            gpus: if count > 0 { count } else { self.waiting },
            limit: self.limit.filter(|limit| *limit > 0.0),
            running_for: if count > 0 { self.running_for } else { 0.0 },
            starts: self.restarts + u32::from(count > 0),
            on: self.on,
        });
    }
}
