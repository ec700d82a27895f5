//! The report as text.

use std::fmt::Write as _;

use weir_load::{CallMode, CallProtocol, Counts, Latency, LoadReport, Pace, Spread};

/// Returns the report as text.
pub(super) fn report(report: &LoadReport) -> String {
    let mut out = String::new();
    what(report, &mut out);
    decisions(report, &mut out);
    advice(report, &mut out);
    latency("latency", &report.latency, &mut out);
    open_loop(report, &mut out);
    cpu(report, &mut out);
    if let Some(reason) = &report.ended_early {
        let _ = writeln!(out, "ended early: {reason}");
    }
    out
}

fn what(report: &LoadReport, out: &mut String) {
    let plan = &report.plan;
    let mode = match plan.mode {
        CallMode::Batch(size) => format!("batches of {size}"),
        CallMode::Stream(size) => format!("streams of {size} a message"),
        other => other.name().to_owned(),
    };
    let by = if plan.protocol == CallProtocol::Http { " by HTTP" } else { "" };
    let pace = match plan.pace {
        Pace::Closed => format!("{} in flight", plan.in_flight),
        Pace::Open(rate) => format!("{rate} calls/s, at most {} in flight", plan.in_flight),
    };
    let spread = match plan.ask.spread {
        Spread::Uniform => String::new(),
        Spread::Zipf(exponent) => format!(" by zipf({exponent})"),
    };
    let _ = writeln!(
        out,
        "{}: {mode}{by}, {} connections, {pace}, {} keys{spread}, {:.1} s after {:.1} s of warm-up",
        plan.authority,
        plan.connections,
        plan.ask.keys,
        report.elapsed.as_secs_f64(),
        plan.warm_up.as_secs_f64()
    );
}

fn decisions(report: &LoadReport, out: &mut String) {
    let counts = &report.counts;
    let _ = writeln!(
        out,
        "decisions  {}/s, {} in all",
        thousands(report.decisions_per_second()),
        counts.decisions()
    );
    let mut line = |name: &str, count: u64| {
        #[allow(clippy::cast_precision_loss)]
        let share = 100.0 * count as f64 / counts.asked.max(1) as f64;
        let _ = writeln!(out, "  {name:<9}{count} ({share:.2} %)");
    };
    line("allowed", counts.allowed);
    line("denied", counts.denied);
    if counts.degraded > 0 {
        line("degraded", counts.degraded);
    }
    line("failed", counts.failed);
    for (name, (count, example)) in &report.errors {
        let example = if example.is_empty() { String::new() } else { format!(": {example}") };
        let _ = writeln!(out, "    {count} × {name}{example}");
    }
}

/// Suggests changes if nearly all calls were denied, because such figures measure denials.
fn advice(report: &LoadReport, out: &mut String) {
    let Counts { allowed, denied, .. } = report.counts;
    if denied == 0 || allowed.saturating_mul(100) >= denied {
        return;
    }
    let ask = &report.plan.ask;
    let resource = ask.resources.first().map_or("", String::as_str);
    let spread = match report.plan.mode {
        CallMode::Envoy => "more descriptors (--descriptor, --keys)".to_owned(),
        _ if resource.contains("{key}") => format!("more than {} keys (--keys)", ask.keys),
        _ if ask.strategy.is_empty() => {
            format!("more resources (--resource '{resource}/{{key}}' --strategy NAME)")
        }
        _ => format!("more resources (--resource '{resource}/{{key}}')"),
    };
    let _ = writeln!(
        out,
        "  nearly all calls were denied, which costs a server less than to let them pass: spread them over {spread}, \
         or raise the limits that they use up (see weir explain)"
    );
}

fn latency(name: &str, latency: &Latency, out: &mut String) {
    let us = |value: f64| {
        if value < 10_000.0 { format!("{value:.0} µs") } else { format!("{:.1} ms", value / 1e3) }
    };
    let _ = writeln!(
        out,
        "{name:<11}p50 {}, p90 {}, p99 {}, p99.9 {}, p99.99 {}, max {}, mean {}",
        us(latency.p50_us),
        us(latency.p90_us),
        us(latency.p99_us),
        us(latency.p99_9_us),
        us(latency.p99_99_us),
        us(latency.max_us),
        us(latency.mean_us)
    );
}

fn open_loop(report: &LoadReport, out: &mut String) {
    let Some(open) = &report.open_loop else { return };
    latency("sent late", &open.late, out);
    if open.missed > 0 {
        let _ = writeln!(
            out,
            "  the rate was not held: {} calls were due and never made, {:.0} of {:.0} a second were",
            open.missed,
            report.calls_per_second(),
            open.rate
        );
    }
}

fn cpu(report: &LoadReport, out: &mut String) {
    for server in &report.cpu.servers {
        let mebibytes = server.rss_bytes >> 20;
        let _ = writeln!(
            out,
            "process {}: {:.2} µs CPU a decision, {:.2} cores, {mebibytes} MiB",
            server.pid, server.us_per_decision, server.cores
        );
    }
    if let Some(own) = report.cpu.generator_us_per_call {
        let _ = writeln!(out, "generator: {own:.2} µs CPU a call");
    }
}

/// Formats a number with thousands separators.
fn thousands(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn thousands_are_apart() {
        let texts = [0.0, 999.0, 1_000.0, 1_234_567.4].map(thousands);
        assert_eq!(texts, ["0", "999", "1,000", "1,234,567"]);
    }
}
