//! Seeded random numbers and the few distributions that workloads are made of.

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): small, quick, and any seed will do.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// The next 64 bits.
    #[expect(clippy::should_implement_trait, reason = "an endless sequence needs no `Option`")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// Evenly from 0 to `count − 1`; `count` is at least 1. (A bias below `count` / 2⁶⁴ is nobody's concern here.)
    pub fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(count)) >> 64) as u64
    }

    /// Evenly from the half-open interval from 0 to 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed with this mean: the gaps of a Poisson process.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Normally distributed with mean 0 and variance 1 (Box & Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// One of `weights`, with a probability in proportion to it. They are not all zero.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        let found = weights.iter().position(|&weight| {
            left -= weight;
            left < 0.0
        });
        found.unwrap_or_else(|| weights.iter().rposition(|&weight| weight > 0.0).expect("some weight counts"))
    }
}

/// Ranks 0 … n − 1 with probability ∝ 1 / (rank + 1)^skew; skew 0 is uniform.
///
/// Rejection-inversion (Hörmann & Derflinger, ACM TOMACS 6:3, 1996): no table, a constant number of steps.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u64,
    skew: f64,
    low: f64,
    high: f64,
    shortcut: f64,
}

impl Zipf {
    /// # Panics
    /// If `count` is 0 or `skew` is negative or no number.
    pub fn new(count: u64, skew: f64) -> Self {
        assert!(count > 0 && skew >= 0.0, "{count} ranks with skew {skew}");
        let mut zipf = Zipf { count, skew, low: 0.0, high: 0.0, shortcut: 0.0 };
        zipf.low = zipf.area(1.5) - 1.0;
        zipf.high = zipf.area(count as f64 + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.area(2.5) - zipf.weight(2.0));
        zipf
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.skew * x.ln()).exp()
    }

    /// The integral of [`Self::weight`].
    fn area(&self, x: f64) -> f64 {
        let power = 1.0 - self.skew;
        if power.abs() < 1e-9 { x.ln() } else { ((power * x.ln()).exp_m1()) / power }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.skew;
        if power.abs() < 1e-9 { area.exp() } else { ((power * area).max(-1.0).ln_1p() / power).exp() }
    }

    /// A rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.count as f64);
            if rank - x <= self.shortcut || area >= self.area(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of the first ranks against their definition, for skews on both sides of 1 and at it.
    #[test]
    fn zipf_draws_by_its_definition() {
        for skew in [0.0, 0.5, 1.0, 1.2] {
            let zipf = Zipf::new(50, skew);
            let mut random = Random::new(7);
            let mut counts = [0u32; 50];
            const DRAWS: u32 = 400_000;
            (0..DRAWS).for_each(|_| counts[zipf.draw(&mut random) as usize] += 1);
            let weight = |rank: usize| (rank as f64 + 1.0).powf(-skew);
            let total: f64 = (0..50).map(weight).sum();
            for (rank, &count) in counts.iter().enumerate() {
                let expected = f64::from(DRAWS) * weight(rank) / total;
                // Six standard deviations.
                let off = (f64::from(count) - expected).abs();
                assert!(off < 6.0 * expected.sqrt(), "skew {skew}, rank {rank}: {count} for {expected}");
            }
        }
    }

    #[test]
    fn distributions_have_their_means() {
        let mut random = Random::new(3);
        const DRAWS: usize = 200_000;
        let mean = |draws: &mut dyn FnMut() -> f64| (0..DRAWS).map(|_| draws()).sum::<f64>() / DRAWS as f64;
        assert!((mean(&mut || random.exponential(4.0)) - 4.0).abs() < 0.05);
        assert!(mean(&mut || random.normal()).abs() < 0.02);
        assert!((mean(&mut || random.normal().powi(2)) - 1.0).abs() < 0.03);
        assert!((mean(&mut || random.weighted(&[1.0, 0.0, 3.0]) as f64) - 1.5).abs() < 0.02);
        assert!((mean(&mut || random.below(5) as f64) - 2.0).abs() < 0.02);
    }
}
