//! Two-dimensional convolution, computed as a single product of the weight matrix with patches of the input.

/// Shape of an image or of a convolution's output: `[height, width, channels]`, with the channels of each position
/// adjacent in memory. PyTorch stores the channels first instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Number of rows.
    pub height: usize,
    /// Number of columns.
    pub width: usize,
    /// Number of values at each position of the image.
    pub channels: usize,
}

impl Image {
    /// Returns the number of floats in the image.
    pub fn len(&self) -> usize {
        self.height * self.width * self.channels
    }

    /// Returns whether the image has no floats.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A convolution without padding. Its weight has the shape `[channels, kernel, kernel, input channels]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convolution {
    /// Shape of the input.
    pub input: Image,
    /// Number of output channels.
    pub channels: usize,
    /// Height and width of the window.
    pub kernel: usize,
    /// Number of positions by which the window moves from one output position to the next.
    pub stride: usize,
}

impl Convolution {
    /// Returns the shape of the output.
    pub fn output(&self) -> Image {
        let places = |len: usize| (len - self.kernel) / self.stride + 1;
        Image { height: places(self.input.height), width: places(self.input.width), channels: self.channels }
    }

    /// Returns the number of input floats on which one output value depends.
    pub fn patch_len(&self) -> usize {
        self.kernel * self.kernel * self.input.channels
    }

    /// Returns the number of floats in the patches of `batch` images.
    pub(super) fn patches_len(&self, batch: usize) -> usize {
        let output = self.output();
        batch * output.height * output.width * self.patch_len()
    }

    /// Copies the patch of each output position to `patches`, one after another. `images` is `[batch, input]`.
    pub(super) fn gather(&self, images: &[f32], patches: &mut [f32]) {
        let run = self.kernel * self.input.channels;
        let per_image = self.patches_len(1);
        for (image, patches) in images.chunks_exact(self.input.len()).zip(patches.chunks_exact_mut(per_image))
        {
            let mut runs = patches.chunks_exact_mut(run);
            self.for_each_run(|start| {
                if let Some(to) = runs.next() {
                    to.copy_from_slice(&image[start..start + run]);
                }
            });
        }
    }

    /// Overwrites `images` with the sum of all patches, where each patch is added at the position from which
    /// [`Self::gather`] copied it.
    pub(super) fn scatter(&self, patches: &[f32], images: &mut [f32]) {
        let run = self.kernel * self.input.channels;
        images.fill(0.0);
        let per_image = self.patches_len(1);
        for (image, patches) in images.chunks_exact_mut(self.input.len()).zip(patches.chunks_exact(per_image))
        {
            let mut runs = patches.chunks_exact(run);
            self.for_each_run(|start| {
                if let Some(from) = runs.next() {
                    image[start..start + run].iter_mut().zip(from).for_each(|(sum, x)| *sum += x);
                }
            });
        }
    }

    /// Calls `visit` with the start index of each row of each window. A row consists of `kernel * channels` adjacent
    /// floats.
    fn for_each_run(&self, mut visit: impl FnMut(usize)) {
        let output = self.output();
        let row = self.input.width * self.input.channels;
        for y in 0..output.height {
            for x in 0..output.width {
                let corner = y * self.stride * row + x * self.stride * self.input.channels;
                (0..self.kernel).for_each(|line| visit(corner + line * row));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: Image = Image { height: 5, width: 6, channels: 2 };

    #[test]
    fn patches_contain_the_windows_in_row_order() {
        let convolution = Convolution { input: INPUT, channels: 3, kernel: 2, stride: 3 };
        assert_eq!(convolution.output(), Image { height: 2, width: 2, channels: 3 });
        let image: Vec<_> = (0..INPUT.len()).map(|i| i as f32).collect();
        let mut patches = vec![0.0; convolution.patches_len(1)];
        convolution.gather(&image, &mut patches);
        // The window at row 3, column 3: two rows of two positions with two channels each.
        assert_eq!(patches[24..], [42.0, 43.0, 44.0, 45.0, 54.0, 55.0, 56.0, 57.0]);
    }

    #[test]
    fn scattering_counts_the_patches_that_cover_a_pixel() {
        let convolution = Convolution { input: INPUT, channels: 1, kernel: 3, stride: 1 };
        let patches = vec![1.0; convolution.patches_len(1)];
        let mut image = vec![9.0; INPUT.len()];
        convolution.scatter(&patches, &mut image);
        let at = |y: usize, x: usize| image[(y * INPUT.width + x) * INPUT.channels];
        assert_eq!([at(0, 0), at(0, 2), at(2, 2), at(4, 5)], [1.0, 3.0, 9.0, 1.0]);
    }
}
