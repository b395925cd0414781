//! Conversion of a module's gradients to and from one vector, in the order in which the module is visited.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorData};

/// Returns the gradients as a vector (`[num_params]`). The elements of a parameter without a gradient are zero.
pub fn to_vector<M: Module>(module: &M, gradients: &GradientsParams) -> Vec<f32> {
    let mut visitor = Gather { gradients, vector: Vec::with_capacity(module.num_params()) };
    module.visit(&mut visitor);
    visitor.vector
}

/// Replaces the gradients with those in a vector that has the layout of [`to_vector`].
pub fn from_vector<M: Module>(module: &M, gradients: &mut GradientsParams, vector: &[f32]) {
    module.visit(&mut Scatter { gradients, rest: vector });
}

struct Gather<'a> {
    gradients: &'a GradientsParams,
    vector: Vec<f32>,
}

impl ModuleVisitor for Gather<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let start = self.vector.len();
        self.vector.resize(start + param.shape().num_elements(), 0.0);
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            let data = gradient.into_data();
            self.vector[start..].copy_from_slice(data.as_slice().expect("gradients are f32"));
        }
    }
}

struct Scatter<'a, 'v> {
    gradients: &'a mut GradientsParams,
    rest: &'v [f32],
}

impl ModuleVisitor for Scatter<'_, '_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let shape = param.shape();
        let (own, rest) = self.rest.split_at(shape.num_elements());
        self.rest = rest;
        let data = TensorData::new(own.to_vec(), shape);
        self.gradients.register(param.id, Tensor::<D>::from_data(data, &param.val().inner().device()));
    }
}
