//! The program as a person meets it, on the lab's driver library: what it prints, keeps and returns.

#[cfg(test)]
mod command {
    mod audit;
    mod bench;
    mod config;
    mod idle;
    mod load;
    mod none;
    mod probe;
    mod records;
    mod run;
    mod signals;
    mod terminal;
    mod usage;
    mod watch;
}
