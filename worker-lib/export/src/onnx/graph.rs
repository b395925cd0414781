//! Construction of an ONNX graph, node by node.

use super::proto::{
    ATTRIBUTE_FLOAT, ATTRIBUTE_INT, ATTRIBUTE_INTS, ATTRIBUTE_STRING, AttributeProto, DimensionProto, FLOAT,
    GraphProto, INT64, NodeProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};

/// Name of the variable batch size.
const BATCH: &str = "batch";

/// ONNX graph under construction. Values are referred to by name.
#[derive(Default)]
pub(super) struct Graph {
    proto: GraphProto,
}

/// Type of the elements of a value.
#[derive(Clone, Copy)]
pub(super) enum Element {
    F32,
    I64,
}

impl Graph {
    /// Adds a node whose output has the same name as the node. Returns this name.
    pub(super) fn node(
        &mut self,
        name: &str,
        operator: &str,
        inputs: &[&str],
        attributes: Vec<AttributeProto>,
    ) -> String {
        self.node_with_outputs(name, operator, (inputs, &[name]), attributes);
        name.to_owned()
    }

    /// Adds a node with named inputs and outputs. An empty name represents an omitted optional input or output.
    pub(super) fn node_with_outputs(
        &mut self,
        name: &str,
        operator: &str,
        (inputs, outputs): (&[&str], &[&str]),
        attributes: Vec<AttributeProto>,
    ) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        self.proto.node.push(NodeProto {
            input: owned(inputs),
            output: owned(outputs),
            name: Some(name.to_owned()),
            op_type: Some(operator.to_owned()),
            attribute: attributes,
        });
    }

    /// Adds a constant tensor of floats, and returns its name.
    pub(super) fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.constant(name, FLOAT, shape, bytes)
    }

    /// Adds a constant integer, and returns its name.
    pub(super) fn integer(&mut self, name: &str, value: i64) -> String {
        self.constant(name, INT64, &[], value.to_le_bytes().to_vec())
    }

    /// Adds a constant list of integers, and returns its name.
    pub(super) fn integers(&mut self, name: &str, values: &[i64]) -> String {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.constant(name, INT64, &[values.len()], bytes)
    }

    fn constant(&mut self, name: &str, data_type: i32, shape: &[usize], bytes: Vec<u8>) -> String {
        self.proto.initializer.push(TensorProto {
            dims: shape.iter().map(|size| *size as i64).collect(),
            data_type: Some(data_type),
            name: Some(name.to_owned()),
            raw_data: Some(bytes),
        });
        name.to_owned()
    }

    /// Declares an input: a batch of values of this shape.
    pub(super) fn input(&mut self, name: &str, element: Element, shape: &[usize], help: &str) {
        self.proto.input.push(value(name, element, shape, help));
    }

    /// Declares the value `name` as an output: a batch of values of this shape.
    pub(super) fn output(&mut self, name: &str, element: Element, shape: &[usize], help: &str) {
        self.proto.output.push(value(name, element, shape, help));
    }

    /// Returns the finished graph.
    pub(super) fn finish(mut self, name: &str) -> GraphProto {
        self.proto.name = Some(name.to_owned());
        self.proto
    }
}

fn value(name: &str, element: Element, shape: &[usize], help: &str) -> ValueInfoProto {
    let batch = DimensionProto { dim_value: None, dim_param: Some(BATCH.to_owned()) };
    let sizes = shape.iter().map(|size| DimensionProto { dim_value: Some(*size as i64), dim_param: None });
    let tensor_type = TensorTypeProto {
        elem_type: Some(match element {
            Element::F32 => FLOAT,
            Element::I64 => INT64,
        }),
        shape: Some(TensorShapeProto { dim: std::iter::once(batch).chain(sizes).collect() }),
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { tensor_type: Some(tensor_type) }),
        doc_string: Some(help.to_owned()),
    }
}

/// Returns an attribute with a float.
pub(super) fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { f: Some(value), ..attribute(name, ATTRIBUTE_FLOAT) }
}

/// Returns an attribute with an integer.
pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), ..attribute(name, ATTRIBUTE_INT) }
}

/// Returns an attribute with a string.
pub(super) fn string(name: &str, value: &str) -> AttributeProto {
    AttributeProto { s: Some(value.as_bytes().to_vec()), ..attribute(name, ATTRIBUTE_STRING) }
}

/// Returns an attribute with a list of integers.
pub(super) fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), ..attribute(name, ATTRIBUTE_INTS) }
}

fn attribute(name: &str, r#type: i32) -> AttributeProto {
    AttributeProto { name: Some(name.to_owned()), r#type: Some(r#type), ..AttributeProto::default() }
}
