//! Whom a run asked, and what it was told to do.

use serde::{Deserialize, Serialize};

/// The server under test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its address, without credentials; none of somebody else's generator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What the server says it is (header `server`), where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// True when it is this machine (the loopback rule).
    pub is_local: bool,
    /// The command that was metered, for `bench -- COMMAND`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Its exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// How long prompts or answers are, in tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Lengths {
    /// All alike.
    Fixed {
        /// Tokens.
        tokens: u64,
    },
    /// Drawn from a file.
    File {
        /// Its path, as given.
        path: String,
        /// How many it holds.
        entries: u64,
    },
}

/// What a run was told to do. How the server is driven is not known of somebody else's generator.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// The endpoint: `chat` or `completions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// True when answers are streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streaming: Option<bool>,
    /// True when answers may not end before their length (`ignore_eos`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_eos: Option<bool>,
    /// Of prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Lengths>,
    /// Of answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Lengths>,
    /// Requests a repeat, where that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u64>,
    /// Seconds a repeat, where that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Repeats of each rung.
    pub repeats: u32,
    /// The seed that all random choices are made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Seconds before each window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_s: Option<f64>,
    /// Seconds after each window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cool_down_s: Option<f64>,
    /// How long the idle baseline was asked to take, s.
    pub baseline_s: f64,
}
