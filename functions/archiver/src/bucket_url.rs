//! The URL of a bucket.

use aws_types::SdkConfig;
use aws_types::service_config::ServiceConfigKey;

/// How regions begin outside of the partition `aws` and of GovCloud, and the domain of their endpoints.
const DOMAINS: [(&str, &str); 6] = [
    ("cn-", "amazonaws.com.cn"),
    ("eu-isoe-", "cloud.adc-e.uk"),
    ("eusc-", "amazonaws.eu"),
    ("us-iso-", "c2s.ic.gov"),
    ("us-isob-", "sc2s.sgov.gov"),
    ("us-isof-", "csp.hci.ic.gov"),
];

/// The URL of a bucket, without a slash at the end. At a custom endpoint the bucket is in the path, since its name does not
/// resolve as a host there.
pub(crate) fn bucket_url(config: &SdkConfig, bucket: &str) -> String {
    if let Some(endpoint) = custom_endpoint(config) {
        return format!("{}/{bucket}", endpoint.trim_end_matches('/'));
    }
    let region = config.region().map(AsRef::as_ref).unwrap_or_default();
    let domain = DOMAINS
        .iter()
        .find(|(start, _)| region.starts_with(start))
        .map_or("amazonaws.com", |(_, domain)| domain);
    let fips = if config.use_fips() == Some(true) {
        "-fips"
    } else {
        ""
    };
    let dual_stack = if config.use_dual_stack() == Some(true) {
        ".dualstack"
    } else {
        ""
    };
    let host = format!("s3{fips}{dual_stack}.{region}.{domain}");
    if is_host_label(bucket) {
        format!("https://{bucket}.{host}")
    } else {
        format!("https://{host}/{bucket}")
    }
}

/// `AWS_ENDPOINT_URL_S3` before `AWS_ENDPOINT_URL`.
fn custom_endpoint(config: &SdkConfig) -> Option<String> {
    let key = ServiceConfigKey::builder()
        .service_id("S3")
        .env("AWS_ENDPOINT_URL")
        .profile("endpoint_url")
        .build()
        .ok();
    let of_service = config.service_config().zip(key);
    let of_service = of_service.and_then(|(service, key)| service.load_config(key));
    of_service.or_else(|| config.endpoint_url().map(str::to_owned))
}

/// True if the certificate of S3 covers the name as part of the host. It does not cover names with dots.
fn is_host_label(bucket: &str) -> bool {
    bucket
        .bytes()
        .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use aws_sdk_s3::config::endpoint::{DefaultResolver, Params, ResolveEndpoint as _};
    use aws_types::region::Region;
    use aws_types::service_config::LoadServiceConfig;

    use super::*;

    /// What the SDK's own client would use. `None` where it refuses.
    async fn url_of_the_sdk(
        region: &str,
        bucket: &str,
        (fips, dual_stack): (bool, bool),
        endpoint: Option<&str>,
    ) -> Option<String> {
        let params = Params::builder()
            .bucket(bucket)
            .region(region)
            .use_fips(fips)
            .use_dual_stack(dual_stack)
            .set_endpoint(endpoint.map(str::to_owned))
            .force_path_style(endpoint.is_some());
        let resolved = DefaultResolver::new()
            .resolve_endpoint(&params.build().unwrap())
            .await;
        resolved.ok().map(|endpoint| endpoint.url().to_owned())
    }

    fn url(region: &str, bucket: &str, (fips, dual_stack): (bool, bool), endpoint: Option<&str>) -> String {
        let mut config = SdkConfig::builder()
            .region(Region::new(region.to_owned()))
            .use_fips(fips)
            .use_dual_stack(dual_stack);
        config.set_endpoint_url(endpoint.map(str::to_owned));
        bucket_url(&config.build(), bucket)
    }

    const REGIONS: [&str; 12] = [
        "us-east-1",
        "us-west-2",
        "eu-central-1",
        "ap-southeast-4",
        "il-central-1",
        "us-gov-west-1",
        "cn-north-1",
        "eusc-de-east-1",
        "eu-isoe-west-1",
        "us-iso-east-1",
        "us-isob-east-1",
        "us-isof-south-1",
    ];

    #[tokio::test]
    async fn a_bucket_has_the_url_that_the_sdk_gives_it() {
        let mut compared = 0;
        for region in REGIONS {
            for variant in [(false, false), (true, false), (false, true), (true, true)] {
                for bucket in ["my-archive-123456789012", "my.archive", "Legacy_Archive"] {
                    if let Some(expected) = url_of_the_sdk(region, bucket, variant, None).await {
                        assert_eq!(url(region, bucket, variant, None), expected);
                        compared += 1;
                    }
                }
            }
            for endpoint in ["http://127.0.0.1:4566", "https://s3.example.com/below/"] {
                let expected = url_of_the_sdk(region, "archive", (false, false), Some(endpoint)).await;
                assert_eq!(
                    Some(url(region, "archive", (false, false), Some(endpoint))),
                    expected
                );
            }
        }
        assert!(compared >= REGIONS.len() * 3, "{compared}");
    }

    #[derive(Debug)]
    struct Variables;

    impl LoadServiceConfig for Variables {
        fn load_config(&self, key: ServiceConfigKey<'_>) -> Option<String> {
            (key.service_id() == "S3" && key.env() == "AWS_ENDPOINT_URL").then(|| "http://s3:9000".to_owned())
        }
    }

    #[test]
    fn the_endpoint_of_s3_stands_before_that_of_all_services() {
        let config = SdkConfig::builder()
            .endpoint_url("http://127.0.0.1:4566")
            .service_config(Variables);
        assert_eq!(bucket_url(&config.build(), "archive"), "http://s3:9000/archive");
    }
}
