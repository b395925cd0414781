//! Conversion of a Reverb server's description to this service's messages.

use super::extent;
use super::proto::key_distribution_options::Distribution;
use super::proto::{KeyDistributionOptions, RateLimiterCallStats, ServerInfoResponse, TableInfo};
use crate::proto::{DescribeResponse, TableInfo as OurTableInfo};

pub(super) fn response(info: ServerInfoResponse) -> DescribeResponse {
    let tables = info.table_info.into_iter().map(table).collect();
    DescribeResponse { tables, ..DescribeResponse::default() }
}

fn table(info: TableInfo) -> OurTableInfo {
    let limiter = info.rate_limiter_info.unwrap_or_default();
    let completed = |stats: Option<RateLimiterCallStats>| stats.unwrap_or_default().completed as u64;
    let (inserts, samples) = (completed(limiter.insert_stats), completed(limiter.sample_stats));
    let size = info.current_size as u64;
    OurTableInfo {
        name: info.name,
        sampler: selector(info.sampler_options),
        remover: selector(info.remover_options),
        capacity_items: info.max_size as u64,
        // Reverb does not limit the size of a table in bytes.
        capacity_bytes: u64::MAX,
        extent: Some(extent(size)),
        inserts,
        samples,
        deletes: inserts.saturating_sub(size),
        difference: inserts as f64 * limiter.samples_per_insert - samples as f64,
        samples_per_insert: limiter.samples_per_insert,
        min_size_to_sample: limiter.min_size_to_sample as u64,
        min_diff: limiter.min_diff,
        max_diff: limiter.max_diff,
        ..OurTableInfo::default()
    }
}

/// Returns the selector in the notation of [`crate::table::Selector`].
fn selector(options: Option<KeyDistributionOptions>) -> String {
    match options.and_then(|options| options.distribution) {
        Some(Distribution::Fifo(_)) => "fifo".to_owned(),
        Some(Distribution::Uniform(_)) => "uniform".to_owned(),
        Some(Distribution::Prioritized(options)) => format!("prioritized:{}", options.priority_exponent),
        Some(Distribution::Heap(options)) if options.min_heap => "min-heap".to_owned(),
        Some(Distribution::Heap(_)) => "max-heap".to_owned(),
        Some(Distribution::Lifo(_)) => "lifo".to_owned(),
        None => "unknown".to_owned(),
    }
}
