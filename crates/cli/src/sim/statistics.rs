//! Means of a few runs, and how far the truth may be from them.

/// A mean, and half of its 95 % interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mean {
    pub(super) mean: f64,
    pub(super) half: f64,
}

/// 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom; beyond, that of the last is a little too large.
const T: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

impl Mean {
    /// Of at least one value; of one alone the interval is not known.
    pub(super) fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let half = match values.len() {
            0 | 1 => f64::NAN,
            len => {
                let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
                T[(len - 2).min(T.len() - 1)] * (squares / (count - 1.0) / count).sqrt()
            }
        };
        Mean { mean, half }
    }
}

impl std::fmt::Display for Mean {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.half.is_nan() {
            true => write!(f, "{:.2}", self.mean),
            false => write!(f, "{:.2} ± {:.2}", self.mean, self.half),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        let found = Mean::of(&[1.0, 2.0, 3.0, 4.0]);
        // s = √(5/3), t = 3.182 for three degrees of freedom, √4 = 2.
        assert_eq!(found.mean, 2.5);
        assert!((found.half - 3.182 * (5.0f64 / 3.0).sqrt() / 2.0).abs() < 1e-12);
        assert!(Mean::of(&[1.0]).half.is_nan());
    }
}
