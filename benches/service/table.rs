//! The table, in Markdown.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::rows::{Row, Sample};

const HEAD: &str = "\
| server | work | decisions/s | CPU µs | Redis µs | p50 µs | p99 µs | p99.9 µs | decisions/s × | CPU × | generator µs |
|---|---|---|---|---|---|---|---|---|---|---|
";

pub fn text(rows: &[Row], samples: &[Sample]) -> String {
    let mut out = format!(
        "CPU times are µs per decision. The two ratios are to the row in brackets: for decisions/s more is \
         better, for CPU less.\n\n{HEAD}"
    );
    for (row, sample) in rows.iter().zip(samples) {
        let other = samples.iter().find(|it| it.id == row.against).expect("rows are compared with rows");
        let against = rows.iter().find(|it| it.id == row.against).map_or("", |it| it.id);
        let _ = writeln!(
            out,
            "| {} | {}{} | {} | {:.2} | {} | {:.0} | {:.0} | {:.0} | {:.2} ({against}) | {:.2} | {:.2} |",
            row.server,
            row.work,
            if sample.failed > 0 { format!(", **{} failed**", sample.failed) } else { String::new() },
            thousands(sample.per_second),
            sample.server_us,
            if sample.redis_us > 0.0 { format!("{:.2}", sample.redis_us) } else { "–".to_owned() },
            sample.p50_us,
            sample.p99_us,
            sample.p99_9_us,
            sample.per_second / other.per_second,
            sample.cpu_us() / other.cpu_us(),
            sample.generator_us,
        );
    }
    out
}

/// Describes the machine and its load.
pub fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let said = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        output.map_or_else(|_| "none".to_owned(), |it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
    };
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let redis = said("redis-server", "--version");
    let load = read("/proc/loadavg");
    format!(
        "{} cores of {}; Linux {}; {}; Redis {}; load average before: {}; client and servers on these cores, \
         over loopback",
        std::thread::available_parallelism().map_or(0, usize::from),
        model.trim_start_matches([':', '\t', ' ']),
        read("/proc/sys/kernel/osrelease").trim(),
        said("rustc", "--version"),
        redis.split_whitespace().find_map(|word| word.strip_prefix("v=")).unwrap_or("?"),
        load.split_whitespace().take(3).collect::<Vec<_>>().join(" "),
    )
}

/// With a comma before every three digits.
pub fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
