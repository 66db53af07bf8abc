//! How often somebody may guess: each wrong password of a name from an address makes the next try wait longer.
//!
//! By name and address together, so that one client with an old password does not lock out the others behind the same
//! proxy, nor a stranger a user. Whoever tries many names is bounded by how many passwords are hashed at a time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Wrong passwords that cost nothing.
const FREE: u32 = 5;
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// Names and addresses that are remembered. To push one out, as many passwords have to be hashed.
const REMEMBERED: usize = 10_000;

/// Who failed lately. Time is what passed since some moment.
#[derive(Debug, Default)]
pub(super) struct Tries(HashMap<(IpAddr, String), Failed>);

#[derive(Clone, Copy, Debug)]
struct Failed {
    times: u32,
    last: Duration,
}

impl Failed {
    /// When the next try is looked at.
    fn until(self) -> Duration {
        let Some(beyond) = self.times.checked_sub(FREE) else { return self.last };
        self.last + Duration::from_secs(1 << beyond.min(6)).min(LONGEST)
    }
}

/// Whoever has one address of an IPv6 network has all of it.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((u128::from(v6) >> 64 << 64).into()),
        v4 => v4,
    }
}

impl Tries {
    /// How long it must wait, if it must.
    pub(super) fn wait(&self, address: IpAddr, name: &str, now: Duration) -> Option<Duration> {
        let failed = self.0.get(&(network(address), name.to_owned()))?;
        failed.until().checked_sub(now).filter(|wait| !wait.is_zero())
    }

    /// It was wrong.
    pub(super) fn failed(&mut self, address: IpAddr, name: &str, now: Duration) {
        let key = (network(address), name.to_owned());
        if self.0.len() >= REMEMBERED && !self.0.contains_key(&key) {
            let oldest = self.0.iter().min_by_key(|(_, failed)| failed.last).map(|(key, _)| key.clone());
            oldest.map(|oldest| self.0.remove(&oldest));
        }
        let failed = self.0.entry(key).or_insert(Failed { times: 0, last: now });
        *failed = Failed { times: failed.times.saturating_add(1), last: now };
    }

    /// It was right.
    pub(super) fn succeeded(&mut self, address: IpAddr, name: &str) {
        self.0.remove(&(network(address), name.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1000);

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn guessing_gets_slower_and_a_right_password_ends_it() {
        let (mut tries, from) = (Tries::default(), address("10.0.0.1"));
        let mut waits = Vec::new();
        for _ in 0..14 {
            waits.push(tries.wait(from, "anna", NOW).map_or(0, |wait| wait.as_secs()));
            tries.failed(from, "anna", NOW);
        }
        assert_eq!(waits, [0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(tries.wait(from, "anna", NOW + LONGEST), None);
        assert_eq!(tries.wait(from, "otto", NOW), None);
        assert_eq!(tries.wait(address("10.0.0.2"), "anna", NOW), None);
        tries.succeeded(from, "anna");
        assert_eq!(tries.wait(from, "anna", NOW), None);
    }

    #[test]
    fn one_network_is_one_client() {
        let mut tries = Tries::default();
        for host in 0..FREE {
            tries.failed(address(&format!("2001:db8::{host}")), "anna", NOW);
        }
        assert!(tries.wait(address("2001:db8::ffff"), "anna", NOW).is_some());
        assert!(tries.wait(address("2001:db8:0:1::1"), "anna", NOW).is_none());
        for _ in 0..FREE {
            tries.failed(address("::ffff:10.0.0.1"), "anna", NOW);
        }
        assert!(tries.wait(address("10.0.0.1"), "anna", NOW).is_some());
    }

    #[test]
    fn what_is_remembered_is_bounded_and_the_oldest_goes_first() {
        let (mut tries, from) = (Tries::default(), address("10.0.0.1"));
        for n in 0..=REMEMBERED as u64 {
            for _ in 0..FREE {
                tries.failed(from, &n.to_string(), NOW + Duration::from_millis(n));
            }
        }
        assert_eq!(tries.0.len(), REMEMBERED);
        let now = NOW + Duration::from_millis(REMEMBERED as u64);
        assert!(tries.wait(from, "0", NOW).is_none());
        assert!(tries.wait(from, &REMEMBERED.to_string(), now).is_some());
    }
}
