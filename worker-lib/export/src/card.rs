//! Model card for a folder on the Hugging Face Hub.

use std::fmt::Write as _;

use anyhow::Context as _;
use iswitch_cli::evaluation::Evaluation;
use iswitch_learn::algorithms::policy_graph::GraphMemory;

use crate::onnx;
use crate::policy::{ActionTransform, ExportedPolicy, VERSION};

/// Files in the folder: the model card, the description of the policy, and the policy as safetensors and as ONNX.
pub(crate) const FILES: [&str; 4] = ["README.md", "config.json", "model.safetensors", "model.onnx"];

/// Returns the model card.
///
/// # Errors
/// Fails if a name cannot be represented in YAML.
pub(crate) fn file(policy: &ExportedPolicy, evaluation: &Evaluation, seed: u64) -> anyhow::Result<Vec<u8>> {
    let mut card = header(policy, evaluation)?;
    let algorithm = policy.algorithm.to_uppercase();
    let Evaluation { episodes, mean_return, std_return, .. } = evaluation;
    write!(
        card,
        "\n# {algorithm} for {env}\n\n\
         This {algorithm} policy was trained for {steps} steps in the environment `{env}` with \
         [iSwitch]({repository}) {VERSION}.\n\n\
         Its mean return is {mean_return:.2} +/- {std_return:.2} (mean and standard deviation over {episodes} \
         episodes of the deterministic policy, as in `iswitch eval --episodes {episodes} --seed {seed}`).\n\n",
        env = policy.env,
        steps = policy.steps,
        repository = env!("CARGO_PKG_REPOSITORY"),
    )?;
    write!(card, "{}", usage(policy))?;
    write!(
        card,
        "## Training\n\n```sh\niswitch train {} --env {}\n```\n\n\
         Hyper-parameters (set with `--set NAME=VALUE`):\n\n\
         ```json\n{}\n```\n",
        policy.algorithm,
        policy.env,
        serde_json::to_string_pretty(&policy.hyper_parameters)?
    )?;
    Ok(card.into_bytes())
}

/// Returns the header of the model card, which contains metadata for the Hub.
fn header(policy: &ExportedPolicy, evaluation: &Evaluation) -> anyhow::Result<String> {
    // Every JSON string is also a YAML string, regardless of its characters.
    let quoted = |text: &str| serde_json::to_string(text).context("cannot write the model card");
    let env = quoted(&policy.env)?;
    let Evaluation { mean_return, std_return, .. } = evaluation;
    Ok(format!(
        "---\n\
         library_name: iswitch\n\
         pipeline_tag: reinforcement-learning\n\
         tags:\n\
         - {env}\n\
         - {tag}\n\
         - reinforcement-learning\n\
         - deep-reinforcement-learning\n\
         - iswitch\n\
         - onnx\n\
         model-index:\n\
         - name: {name}\n\
         \x20 results:\n\
         \x20 - task:\n\
         \x20     type: reinforcement-learning\n\
         \x20     name: reinforcement-learning\n\
         \x20   dataset:\n\
         \x20     name: {env}\n\
         \x20     type: {env}\n\
         \x20   metrics:\n\
         \x20   - type: mean_reward\n\
         \x20     value: {mean_return:.2} +/- {std_return:.2}\n\
         \x20     name: mean_reward\n\
         \x20     verified: false\n\
         ---\n",
        tag = quoted(&policy.algorithm)?,
        name = quoted(&policy.algorithm.to_uppercase())?,
    ))
}

/// Returns the lines that run a recurrent policy for one step with ONNX Runtime.
fn recurrent_onnx(memory: &GraphMemory) -> String {
    let width = memory.layer.width();
    let parts = onnx::state_parts(memory.layer.cell());
    let zeros: Vec<_> =
        parts.iter().map(|part| format!("\"{part}_in\": np.zeros((1, {width}), dtype=np.float32)")).collect();
    let next: Vec<_> = parts.iter().map(|part| format!("\"{part}_in\": outputs[\"{part}_out\"]")).collect();
    format!(
        "state = {{{}}}\n\
         names = [output.name for output in policy.get_outputs()]\n\
         outputs = dict(zip(names, policy.run(None, {{\"observation\": observations, **state}})))\n\
         actions, state = outputs[\"action\"], {{{}}}\n",
        zeros.join(", "),
        next.join(", ")
    )
}

/// Returns the section that describes how to use the files.
fn usage(policy: &ExportedPolicy) -> String {
    let shape: Vec<_> = policy.observation_shape.iter().map(usize::to_string).collect();
    let action = match &policy.action {
        ActionTransform::Discrete { n, .. } => format!("an integer that selects one of {n} actions"),
        ActionTransform::Continuous { scale, .. } => {
            format!("a vector of length {} in the units of the environment", scale.len())
        }
    };
    let (memory, with_onnx, with_numpy) = match &policy.graph.memory {
        None => (
            "",
            "actions, *_ = policy.run(None, {\"observation\": observations})\n".to_owned(),
            "actions = policy.act(observations)\n",
        ),
        Some(memory) => (
            " The policy is recurrent: its input includes the state that it returned for the preceding observation, \
             or zeros at the start of an episode.",
            recurrent_onnx(memory),
            "state = None\nactions, state = policy.step(observations, state)\n",
        ),
    };
    format!(
        "## Usage\n\n\
         Both files take observations as the environment returns them; normalisation is part of the policy. An action \
         is {action}.{memory}\n\n\
         ```python\n\
         import numpy as np\n\
         import onnxruntime\n\n\
         policy = onnxruntime.InferenceSession(\"model.onnx\")\n\
         observations = np.zeros((1, {shape}), dtype=np.float32)\n\
         {with_onnx}\
         ```\n\n\
         Without ONNX Runtime, with the Python package of iSwitch:\n\n\
         ```python\n\
         from iswitch.policy import load_policy\n\n\
         policy = load_policy(\"model.safetensors\")\n\
         {with_numpy}\
         ```\n\n",
        shape = shape.join(", "),
    )
}
