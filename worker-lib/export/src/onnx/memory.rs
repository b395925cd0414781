//! The recurrent layer of a policy in an ONNX graph. Its state is an input and an output of the graph: the caller
//! starts an episode with zeros and passes the state that the graph returned for the preceding observation.

use iswitch_learn::algorithms::policy_graph::GraphMemory;
use iswitch_learn::nn::Cell;

use super::graph::{Element, Graph, int, string};

/// Name of the constant that holds an axis: the one along which sequences have length 1, and states have one direction.
const AXES: &str = "memory.axes";

/// Returns the parts of the state of a layer, each with its description.
fn state(cell: Cell) -> &'static [(&'static str, &'static str)] {
    match cell {
        Cell::Lstm => &[("h", "Outputs of the LSTM"), ("c", "Cells of the LSTM")],
        Cell::Gru => &[("h", "Outputs of the GRU")],
    }
}

/// Adds the layer with the input `x`, and returns the name of its output.
pub(super) fn add(graph: &mut Graph, memory: &GraphMemory, x: &str) -> String {
    let (cell, width) = (memory.layer.cell(), memory.layer.width());
    // ONNX orders the gates of an LSTM as input, output, forget and cell, and those of a GRU as update, reset and
    // candidate.
    let (operator, order) = match cell {
        Cell::Lstm => ("LSTM", &[0, 3, 1, 2][..]),
        Cell::Gru => ("GRU", &[1, 0, 2][..]),
    };
    let ordered = |values: &[f32]| -> Vec<f32> {
        let block = values.len() / order.len();
        order.iter().flat_map(|gate| values[gate * block..(gate + 1) * block].to_vec()).collect()
    };
    let rows = order.len() * width;
    let [input, recurrent] = [&memory.weight_ih, &memory.weight_hh].map(|weight| ordered(weight));
    let biases = [ordered(&memory.bias_ih), ordered(&memory.bias_hh)].concat();
    let weight_ih = graph.floats("memory.weight_ih", &[1, rows, memory.layer.inputs()], &input);
    let weight_hh = graph.floats("memory.weight_hh", &[1, rows, width], &recurrent);
    let biases = graph.floats("memory.biases", &[1, 2 * rows], &biases);
    let axes = graph.integers(AXES, &[0]);
    let steps = graph.node("memory.input", "Unsqueeze", &[x, &axes], vec![]);
    let before: Vec<_> = state(cell)
        .iter()
        .map(|(part, help)| {
            let help = format!("{help} after the preceding observation; zeros at the start of an episode.");
            graph.input(&format!("{part}_in"), Element::F32, &[width], &help);
            graph.node(&format!("memory.{part}_in"), "Unsqueeze", &[&format!("{part}_in"), &axes], vec![])
        })
        .collect();
    let after: Vec<_> = state(cell).iter().map(|(part, _)| format!("memory.{part}_out")).collect();
    // The omitted optional input between the biases and the state would hold the sequence lengths.
    let mut inputs = vec![&steps[..], &weight_ih, &weight_hh, &biases, ""];
    inputs.extend(before.iter().map(String::as_str));
    let mut outputs = vec![""];
    outputs.extend(after.iter().map(String::as_str));
    let mut attributes = vec![int("hidden_size", width as i64), string("direction", "forward")];
    if cell == Cell::Gru {
        attributes.push(int("linear_before_reset", 1));
    }
    graph.node_with_outputs("memory", operator, (&inputs, &outputs), attributes);
    for ((part, _), after) in state(cell).iter().zip(&after) {
        graph.node(&format!("{part}_out"), "Squeeze", &[after, &axes], vec![]);
    }
    "h_out".to_owned()
}

/// Returns the names of the parts of a state.
pub(crate) fn state_parts(cell: Cell) -> Vec<&'static str> {
    state(cell).iter().map(|(part, _)| *part).collect()
}

/// Declares the state after the observation as outputs of the graph.
pub(super) fn declare_outputs(graph: &mut Graph, memory: Option<&GraphMemory>) {
    let Some(memory) = memory else { return };
    for (part, help) in state(memory.layer.cell()) {
        let help = format!("{help} after the observation.");
        graph.output(&format!("{part}_out"), Element::F32, &[memory.layer.width()], &help);
    }
}
