//! Users and certificate, read again while the node serves: the users when their file changes, both when somebody asks. And
//! what searches left open goes when its time is over.

use crate::auth::Guard;
use crate::log::Level;
use crate::node::Node;
use crate::tls::Tls;
use serde_json::Value;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// Time between looks at the file of users.
const LOOK: Duration = Duration::from_secs(2);

/// What is read again.
pub(crate) struct Reload {
    pub(crate) node: Arc<Node>,
    pub(crate) guard: Option<Arc<Guard>>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// By a signal.
    pub(crate) asked: Arc<Notify>,
}

impl Reload {
    /// Looks for ever.
    pub(crate) async fn keep(self) {
        let this = Arc::new(self);
        loop {
            let asked = tokio::select! {
                () = sleep(LOOK) => false,
                () = this.asked.notified() => true,
            };
            let this = this.clone();
            // Files are read: that may wait.
            let _ = tokio::task::spawn_blocking(move || this.look(asked)).await;
        }
    }

    fn look(&self, asked: bool) {
        self.node.sweep();
        if let Some(guard) = &self.guard {
            match guard.refresh(asked) {
                Ok(false) => {}
                Ok(true) => self.node.log.say(Level::Info, "users were read", &[]),
                Err(error) => self.failed("users could not be read: those known before stay", &error),
            }
        }
        if let Some(tls) = self.tls.as_ref().filter(|_| asked) {
            match tls.refresh() {
                Ok(()) => self.node.log.say(Level::Info, "the certificate was read", &[]),
                Err(error) => self.failed("the certificate could not be read: the one before stays", &error),
            }
        }
    }

    fn failed(&self, what: &str, error: &dyn Display) {
        self.node.log.say(Level::Error, what, &[("reason", Value::from(error.to_string()))]);
    }
}
