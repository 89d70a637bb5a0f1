//! What is to be driven: from options to the rungs of a run.

use std::{path::PathBuf, time::Duration};

use anyhow::Context as _;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::{ENERGY, LOAD, RECORD, TARGET};
use crate::{
    bench::{
        load::{LengthFile, Plan, Sizes, Until},
        record::{Kind, Settings},
    },
    context::Usage,
    duration,
};

/// Tokens of the prompts where answers are what matters.
const SHORT_PROMPT: u64 = 16;

/// What says how we drive a server, and would say nothing beside a COMMAND that drives it.
pub const OF_OUR_LOAD: [&str; 23] = [
    "model",
    "concurrency",
    "rate",
    "floor",
    "isolated",
    "prompt_tokens",
    "answer_tokens",
    "lengths",
    "long_prompt",
    "long_answer",
    "requests",
    "duration",
    "warm_up",
    "cool_down",
    "repeats",
    "seed",
    "no_stream",
    "completions",
    "no_ignore_eos",
    "headers",
    "timeout",
    "rho",
    "journal",
];

/// Options of the load.
#[derive(Debug, clap::Args)]
pub struct Wanted {
    /// The model (default: the only one that the server lists)
    #[arg(long, help_heading = TARGET)]
    model: Option<String>,
    /// Rungs with so many requests in flight, each followed by the next
    #[arg(long, value_name = "N[,N]", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = LOAD)]
    concurrency: Vec<u32>,
    /// Rungs with so many requests a second at random times, whatever is in flight
    #[arg(long, value_name = "R[,R]", value_delimiter = ',', value_parser = rate, help_heading = LOAD)]
    rate: Vec<f64>,
    /// A rung with one stream and long answers: the cheapest a token can be alone
    #[arg(long, help_heading = LOAD)]
    floor: bool,
    /// Isolated points for `joulebook bench fit`: long prompts with answers of one token, and short
    /// prompts with long answers at these concurrencies (1,8,32,128 if none is given)
    #[arg(long, value_name = "N[,N]", value_delimiter = ',', num_args = 0..=1, default_missing_value = "1,8,32,128",
        value_parser = clap::value_parser!(u32).range(1..=65_536), help_heading = LOAD)]
    isolated: Vec<u32>,
    /// Tokens of a prompt
    #[arg(long, value_name = "TOKENS", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..=1 << 24), help_heading = LOAD)]
    prompt_tokens: u64,
    /// Tokens of an answer
    #[arg(long, value_name = "TOKENS", default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..=1 << 24), help_heading = LOAD)]
    answer_tokens: u64,
    /// Draw both lengths from this file instead: a prompt's and an answer's tokens on a line
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prompt_tokens", "answer_tokens"], help_heading = LOAD)]
    lengths: Option<PathBuf>,
    /// Tokens of the prompts of the prefill point
    #[arg(long, value_name = "TOKENS", default_value_t = 2048, value_parser = clap::value_parser!(u64).range(1..=1 << 24), help_heading = LOAD)]
    long_prompt: u64,
    /// Tokens of the answers of the floor and of the decode points
    #[arg(long, value_name = "TOKENS", default_value_t = 512, value_parser = clap::value_parser!(u64).range(2..=1 << 24), help_heading = LOAD)]
    long_answer: u64,
    /// A window closes when so many requests that were sent in it are over
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..), help_heading = LOAD)]
    requests: Option<u64>,
    /// A window closes after this time
    #[arg(long, value_name = "SPAN", default_value = "20s", value_parser = duration::span, help_heading = LOAD)]
    duration: Duration,
    /// Load before each window; 0 for none
    #[arg(long, value_name = "SPAN", default_value = "2s", value_parser = span_or_none, help_heading = LOAD)]
    warm_up: Duration,
    /// Load after each window; 0 for none
    #[arg(long, value_name = "SPAN", default_value = "500ms", value_parser = span_or_none, help_heading = LOAD)]
    cool_down: Duration,
    /// How often each rung is run; all once, then all again
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = LOAD)]
    repeats: u32,
    /// What all that is random is drawn from
    #[arg(long, default_value_t = 1, help_heading = LOAD)]
    seed: u64,
    /// Ask for answers in one piece
    #[arg(long, help_heading = TARGET)]
    no_stream: bool,
    /// Ask for completions of plain prompts instead of chats
    #[arg(long, help_heading = TARGET)]
    completions: bool,
    /// Let answers end where the model ends them
    #[arg(long, help_heading = TARGET)]
    no_ignore_eos: bool,
    /// What stands in the head of each request ('Authorization: Bearer …'); repeatable
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header, help_heading = TARGET)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// How long one answer may take
    #[arg(long, value_name = "SPAN", default_value = "5m", value_parser = duration::span, help_heading = TARGET)]
    timeout: Duration,
    /// What a decode token costs in prompt tokens, from `joulebook bench fit`
    #[arg(long, value_name = "FILE", help_heading = ENERGY)]
    rho: Option<PathBuf>,
    /// Keep the journal of the books in this file, for `joulebook audit`
    #[arg(long, value_name = "FILE", help_heading = RECORD)]
    journal: Option<PathBuf>,
    /// Tokens that the COMMAND produced: adds joules per token
    #[arg(long, requires = "command", value_name = "N", help_heading = ENERGY)]
    tokens: Option<u64>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1e6);
    rate.ok_or_else(|| "give requests a second, above 0".to_owned())
}

fn span_or_none(text: &str) -> Result<Duration, String> {
    if ["0", "0s"].contains(&text.trim()) { Ok(Duration::ZERO) } else { duration::span(text) }
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let wrong = || "give NAME: VALUE".to_owned();
    let (name, value) = text.split_once(':').ok_or_else(wrong)?;
    let name = name.trim().parse().map_err(|_| wrong())?;
    let mut value: HeaderValue = value.trim().parse().map_err(|_| wrong())?;
    value.set_sensitive(true);
    Ok((name, value))
}

impl Wanted {
    /// The rungs, in the order they are run. Refused: none, and one that is asked for twice.
    pub fn plans(&self) -> anyhow::Result<Vec<Plan>> {
        let sizes = match &self.lengths {
            Some(path) => Sizes::Drawn(LengthFile::read(path).map_err(|it| Usage(it.to_string()))?),
            None => Sizes::Fixed(self.prompt_tokens, self.answer_tokens),
        };
        let short = Sizes::Fixed(SHORT_PROMPT, self.long_answer);
        let mut rungs: Vec<(Kind, Sizes)> = Vec::new();
        let closed = |concurrency: &u32| Kind::ClosedLoop { concurrency: *concurrency };
        rungs.extend(self.concurrency.iter().map(|it| (closed(it), sizes.clone())));
        let open = |rate: &f64| Kind::Rate { requests_per_s: *rate };
        rungs.extend(self.rate.iter().map(|rate| (open(rate), sizes.clone())));
        rungs.extend(self.floor.then(|| (Kind::Floor, short.clone())));
        if !self.isolated.is_empty() {
            let long = Sizes::Fixed(self.long_prompt, 1);
            rungs.push((Kind::PrefillPoint { concurrency: 1 }, long));
            let point = |concurrency: &u32| Kind::DecodePoint { concurrency: *concurrency };
            rungs.extend(self.isolated.iter().map(|it| (point(it), short.clone())));
        }
        if rungs.is_empty() {
            let what =
                "nothing to drive: give --concurrency 1,8,32, --rate 2.5, --floor or --isolated";
            return Err(Usage(what.to_owned()).into());
        }
        let name = |(kind, _): &(Kind, Sizes)| kind.to_string();
        for (at, rung) in rungs.iter().enumerate() {
            if rungs.iter().take(at).any(|other| name(other) == name(rung)) {
                let twice = format!("{} is asked for twice: --repeats runs it again", name(rung));
                return Err(Usage(twice).into());
            }
        }
        let plan = |(kind, sizes)| Plan {
            kind,
            sizes,
            until: self.until(),
            warm_up: self.warm_up,
            cool_down: self.cool_down,
        };
        Ok(rungs.into_iter().map(plan).collect())
    }

    fn until(&self) -> Until {
        self.requests.map_or(Until::Time(self.duration), Until::Requests)
    }

    /// The same on the record.
    pub fn settings(&self, plans: &[Plan], baseline: Duration) -> Settings {
        let lengths = plans.first().map(|plan| plan.sizes.lengths()).unzip();
        let (requests, seconds) = match self.until() {
            Until::Requests(requests) => (Some(requests), None),
            Until::Time(time) => (None, Some(time.as_secs_f64())),
        };
        Settings {
            endpoint: Some(if self.completions { "completions" } else { "chat" }.to_owned()),
            streaming: Some(!self.no_stream),
            ignore_eos: Some(!self.no_ignore_eos),
            prompt: lengths.0,
            answer: lengths.1,
            requests,
            seconds,
            repeats: self.repeats,
            seed: Some(self.seed),
            warm_up_s: Some(self.warm_up.as_secs_f64()),
            cool_down_s: Some(self.cool_down.as_secs_f64()),
            baseline_s: baseline.as_secs_f64(),
        }
    }

    /// What stands in the head of each request; the usual variable is heeded where no header says
    /// who asks.
    pub fn headers(&self) -> anyhow::Result<HeaderMap> {
        let mut headers: HeaderMap = self.headers.iter().cloned().collect();
        let key = std::env::var("OPENAI_API_KEY").ok().filter(|key| !key.is_empty());
        if let Some(key) = key
            && !headers.contains_key(http::header::AUTHORIZATION)
        {
            let mut value: HeaderValue = format!("Bearer {key}")
                .parse()
                .context("OPENAI_API_KEY cannot stand in a request's head")?;
            value.set_sensitive(true);
            headers.insert(http::header::AUTHORIZATION, value);
        }
        Ok(headers)
    }

    /// The model asked for.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Answers are streamed.
    pub const fn streams(&self) -> bool {
        !self.no_stream
    }

    /// Chats are asked for.
    pub const fn chats(&self) -> bool {
        !self.completions
    }

    /// Answers may not end before their length.
    pub const fn ignores_eos(&self) -> bool {
        !self.no_ignore_eos
    }

    /// Load before each window.
    pub const fn warm_up(&self) -> Duration {
        self.warm_up
    }

    /// How long one answer may take.
    pub const fn timeout(&self) -> Duration {
        self.timeout
    }

    /// How often each rung is run, and the seed of each time.
    pub fn repeats(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let seed = self.seed;
        (1..=self.repeats).map(move |number| (number, seed.wrapping_add(u64::from(number) - 1)))
    }

    /// The file with the fitted ρ.
    pub const fn rho(&self) -> Option<&PathBuf> {
        self.rho.as_ref()
    }

    /// Where the journal goes.
    pub const fn journal(&self) -> Option<&PathBuf> {
        self.journal.as_ref()
    }

    /// Tokens of a command.
    pub const fn tokens(&self) -> Option<u64> {
        self.tokens
    }
}
