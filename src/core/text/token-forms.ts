/** Forms of tokens that can be recognised wherever they are, because their makers gave them a fixed beginning. */

/** One form. `source` is where the form is described: a rule of gitleaks (its default configuration), a detector of
 *  trufflehog, a page or the source code of the vendor, or scanners that agree. Lengths are often shorter than
 *  described, because makers lengthen their tokens and logs cut them. A form that needs the name of its variable is not here. */
type TokenForm = readonly [name: string, pattern: RegExp, source: string, checked: string];

// biome-ignore format: one line a form
const tokenForms: readonly TokenForm[] = [
  ["AWS access key id", /(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}/, "gitleaks aws-access-token", "2026-11-18"],
  ["AWS session token", /(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[\w+/=]{80,}/, "trufflehog aws/session_keys", "2026-11-18"],
  ["Google API key", /AIza[\w-]{30,}/, "gitleaks gcp-api-key", "2026-11-18"],
  ["Google OAuth client secret", /GOCSPX-[\w-]{20,}/, "openrouter.ai/docs/guides/features/guardrails/secret-formats", "2026-11-18"],
  ["Google OAuth access token", /ya29\.[\w-]{20,}/, "trufflehog googleoauth2", "2026-11-18"],
  ["Google OAuth refresh token", /1\/\/0[\w-]{30,}/, "trufflehog gcpapplicationdefaultcredentials", "2026-11-18"],
  ["Microsoft Entra client secret", /[\w~.]{3}\dQ~[\w~.-]{31,34}/, "gitleaks azure-ad-client-secret", "2026-11-18"],
  ["Teams webhook", /webhook\.office\.com\/webhookb2\/[\w@/-]{40,}/, "gitleaks microsoft-teams-webhook", "2026-11-18"],
  ["GitHub token", /gh[oprsu]_[A-Za-z0-9]{20,}/, "gitleaks github-pat, github-oauth, github-app-token, github-refresh-token", "2026-11-18"],
  ["GitHub fine-grained token", /github_pat_\w{20,}/, "gitleaks github-fine-grained-pat", "2026-11-18"],
  ["GitLab token", /gl(?:pat|dt|rt|ptt|cbt|ft|imt|agent|oas|soat|ffct)-[\w.-]{20,}/, "gitleaks gitlab-*", "2026-11-18"],
  ["GitLab runner registration", /GR1348941[\w-]{20}/, "gitleaks gitlab-rrt", "2026-11-18"],
  ["Atlassian and Bitbucket token", /AT(?:ATT|CTT)3[\w=-]{20,}|ATBB[A-Za-z0-9]{24,}/, "gitleaks atlassian-api-token; trufflehog bitbucketapppassword", "2026-11-18"],
  ["Slack token", /xox[a-z](?:\.xox[a-z])?-[\w-]{10,}|xapp-[\w-]{10,}/, "gitleaks slack-*", "2026-11-18"],
  ["Slack webhook", /hooks\.slack(?:-gov)?\.com\/(?:services|workflows|triggers)\/[\w+/]{20,}/, "gitleaks slack-webhook-url", "2026-11-18"],
  ["Discord bot token", /[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,}/, "trufflehog discordbottoken", "2026-11-18"],
  ["Discord webhook", /discord(?:app)?\.com\/api\/webhooks\/\d{10,30}\/[\w-]{20,}/, "trufflehog discordwebhook", "2026-11-18"],
  ["Telegram bot token", /\d{8,12}:AA[\w-]{32,}/, "gitleaks telegram-bot-api-token", "2026-11-18"],
  ["Twilio API key", /SK[0-9a-fA-F]{32}(?![0-9A-Za-z])/, "gitleaks twilio-api-key", "2026-11-18"],
  ["SendGrid key", /SG\.[\w-]{16,32}\.[\w-]{16,}/, "gitleaks sendgrid-api-token", "2026-11-18"],
  ["Mailgun key", /key-[0-9a-zA-Z]{32}(?![0-9A-Za-z])|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![0-9A-Za-z])/, "gitleaks mailgun-private-api-token, mailgun-signing-key", "2026-11-18"],
  ["Mailchimp key", /[0-9a-f]{32}-us\d{1,2}(?![0-9A-Za-z])/, "gitleaks mailchimp-api-key", "2026-11-18"],
  ["Brevo key", /xkeysib-[\w-]{30,}/, "gitleaks sendinblue-api-token", "2026-11-18"],
  ["Resend key", /re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![0-9A-Za-z])/, "trufflehog resend", "2026-11-18"],
  ["Stripe key", /[rsp]k_(?:live|test|prod)_\w{10,}|whsec_[\w+/=]{20,}/, "gitleaks stripe-access-token", "2026-11-18"],
  ["Square token", /EAAA[\w-]{50,}|sq0(?:atp|csp)-[\w-]{22,}/, "gitleaks square-access-token", "2026-11-18"],
  ["Braintree and PayPal token", /access_token\$(?:production|sandbox)\$\w{10,40}\$[0-9a-f]{32}/, "trufflehog braintreepayments", "2026-11-18"],
  ["Plaid token", /access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f-]{27}/, "gitleaks plaid-api-token", "2026-11-18"],
  ["Shopify token", /shp(?:at|ca|pa|ss|ua)_[0-9a-zA-Z]{24,}/, "gitleaks shopify-*", "2026-11-18"],
  ["npm token", /npm_[A-Za-z0-9]{30,}/, "gitleaks npm-access-token", "2026-11-18"],
  ["PyPI token", /pypi-[\w-]{40,}/, "gitleaks pypi-upload-token", "2026-11-18"],
  ["RubyGems key", /rubygems_[0-9a-zA-Z]{24,}/, "gitleaks rubygems-api-token", "2026-11-18"],
  ["crates.io token", /cio[A-Za-z0-9]{32}(?![0-9A-Za-z])/, "crates.io, crates_io_database/src/utils/token.rs", "2026-11-18"],
  ["NuGet key", /oy2[a-z0-9]{43}(?![0-9A-Za-z])/, "trufflehog nugetapikey", "2026-11-18"],
  ["Clojars token", /CLOJARS_[0-9a-zA-Z]{30,}/, "gitleaks clojars-api-token", "2026-11-18"],
  ["Docker Hub token", /dckr_[op]at_[\w-]{20,}/, "trufflehog dockerhub", "2026-11-18"],
  ["JFrog Artifactory token", /AKCp[A-Za-z0-9]{60,}|cmVmd[A-Za-z0-9]{59}(?![0-9A-Za-z])/, "gitleaks artifactory-api-key, artifactory-reference-token", "2026-11-18"],
  ["Hugging Face token", /(?:hf|api_org)_[A-Za-z0-9]{24,}/, "gitleaks huggingface-access-token", "2026-11-18"],
  ["OpenAI key", /sk-(?:(?:proj|svcacct|admin)-[\w-]{20,}|[A-Za-z0-9]{20,})/, "gitleaks openai-api-key", "2026-11-18"],
  ["Anthropic key", /sk-ant-[\w-]{20,}/, "gitleaks anthropic-api-key, anthropic-admin-api-key", "2026-11-18"],
  ["OpenRouter and Langfuse key", /sk-(?:or-v1|lf)-[0-9a-f-]{32,}/, "openrouter.ai/docs/guides/features/guardrails/secret-formats; trufflehog langfuse", "2026-11-18"],
  ["Groq key", /gsk_[A-Za-z0-9]{24,}/, "trufflehog groq", "2026-11-18"],
  ["xAI key", /xai-[A-Za-z0-9]{30,}/, "trufflehog xai", "2026-11-18"],
  ["Replicate token", /r8_[A-Za-z0-9]{24,}/, "trufflehog replicate", "2026-11-18"],
  ["Perplexity key", /pplx-[A-Za-z0-9]{24,}/, "gitleaks perplexity-api-key", "2026-11-18"],
  ["LangSmith key", /lsv2_[ps][kt]_[0-9a-f_]{32,}/, "trufflehog langsmith", "2026-11-18"],
  ["Databricks token", /dapi[0-9a-zA-Z]{32}/, "gitleaks databricks-api-token", "2026-11-18"],
  ["Vault token", /hv[bsr]\.[\w-]{20,}|s\.(?=[A-Za-z]{0,20}\d[A-Za-z]{0,20}\d)[A-Za-z0-9]{24}(?!\w)/, "gitleaks vault-service-token, vault-batch-token", "2026-11-18"],
  ["Terraform Cloud token", /[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{30,}/, "gitleaks hashicorp-tf-api-token", "2026-11-18"],
  ["Pulumi token", /pul-[0-9a-zA-Z]{32,}/, "gitleaks pulumi-api-token", "2026-11-18"],
  ["Doppler token", /dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{40,}/, "gitleaks doppler-api-token", "2026-11-18"],
  ["1Password token", /ops_eyJ[\w+/=]{100,}|A3-[A-Z0-9]{6}-[A-Z0-9-]{11,12}(?:-[A-Z0-9]{5}){3}/, "gitleaks 1password-service-account-token, 1password-secret-key", "2026-11-18"],
  ["DigitalOcean token", /do[opr]_v1_[0-9a-zA-Z]{32,}/, "gitleaks digitalocean-pat, -access-token, -refresh-token", "2026-11-18"],
  ["Alibaba Cloud key id", /LTAI[A-Za-z0-9]{20}(?![0-9A-Za-z])/, "gitleaks alibaba-access-key-id", "2026-11-18"],
  ["Fly token", /fo1_[\w-]{24,}|fm[12][ar]?_[\w+/=]{40,}/, "gitleaks flyio-access-token", "2026-11-18"],
  ["Heroku key", /HRKU-[\w-]{24,}/, "gitleaks heroku-api-key-v2", "2026-11-18"],
  ["Netlify token", /nf[bcopu]_[A-Za-z0-9]{24,}/, "agreement of several public scanners", "2026-11-18"],
  ["Vercel token", /vc[aipkr]_[A-Za-z0-9]{24,}/, "agreement of several public scanners", "2026-11-18"],
  ["Cloudflare origin CA key", /v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}/, "gitleaks cloudflare-origin-ca-key", "2026-11-18"],
  ["Supabase token", /sbp_[0-9a-zA-Z_]{24,}|sb_secret_[\w-]{20,}/, "docs.gitguardian.com: supabase_personal_access_token", "2026-11-18"],
  ["PlanetScale token", /pscale_(?:tkn|pw|oauth)_[\w.=-]{24,}/, "gitleaks planetscale-*", "2026-11-18"],
  ["Neon key", /napi_[A-Za-z0-9]{24,}|npg_[A-Za-z0-9]{12,}/, "agreement of several public scanners", "2026-11-18"],
  ["New Relic key", /NR(?:AK|II|JS|RA|IQ)-[\w-]{19,}/, "gitleaks new-relic-*", "2026-11-18"],
  ["Sentry token", /sntry[su]_[\w+/=]{30,}/, "gitleaks sentry-org-token, sentry-user-token", "2026-11-18"],
  ["Grafana token", /glsa_\w{24,}|glc_[\w+/=]{32,}/, "gitleaks grafana-*", "2026-11-18"],
  ["Dynatrace token", /dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}/, "gitleaks dynatrace-api-token", "2026-11-18"],
  ["PostHog key", /phx_[A-Za-z0-9]{24,}/, "trufflehog posthog", "2026-11-18"],
  ["Sonar token", /sq[apu]_[0-9a-f]{40}/, "trufflehog sonarcloud", "2026-11-18"],
  ["Linear key", /lin_(?:api|oauth)_[A-Za-z0-9]{24,}/, "gitleaks linear-api-key", "2026-11-18"],
  ["Notion token", /ntn_[A-Za-z0-9]{24,}|secret_[A-Za-z0-9]{43}(?![0-9A-Za-z])/, "gitleaks notion-api-token; trufflehog notion", "2026-11-18"],
  ["Figma token", /fig[dour]_[\w-]{24,}/, "trufflehog figmapersonalaccesstoken", "2026-11-18"],
  ["Asana token", /[12]\/\d{13,20}(?:\/\d{13,20})?:[0-9a-f]{32}/, "trufflehog asanapersonalaccesstoken", "2026-11-18"],
  ["Airtable token", /pat[A-Za-z0-9]{14}\.[0-9a-zA-Z]{32,}/, "trufflehog airtablepersonalaccesstoken", "2026-11-18"],
  ["HubSpot token", /pat-(?:na|eu)\d-[0-9a-f]{8}-[0-9a-f-]{27}/, "trufflehog hubspot_apikey", "2026-11-18"],
  ["Typeform token", /tfp_[\w.=-]{50,}/, "gitleaks typeform-api-token", "2026-11-18"],
  ["Dropbox token", /sl\.(?:u\.)?[\w-]{60,}/, "gitleaks dropbox-short-lived-api-token", "2026-11-18"],
  ["Postman key", /PMAK-[\w-]{30,}/, "gitleaks postman-api-token", "2026-11-18"],
  ["CircleCI and Buildkite token", /CCI(?:PAT|PRJ)_\w{20,}|bk[a-z]{2}_[0-9a-f]{40}/, "trufflehog circleci, buildkite", "2026-11-18"],
  ["Tailscale key", /tskey-[a-z]{2,10}-[\w-]{16,}/, "trufflehog tailscale", "2026-11-18"],
  ["OpenShift token", /sha256~[\w-]{43}/, "gitleaks openshift-user-token", "2026-11-18"],
  ["Sourcegraph token", /sgp_(?:(?:[0-9a-f]{16}|local)_)?[0-9a-f]{40}/, "gitleaks sourcegraph-access-token", "2026-11-18"],
  ["age key", /AGE-SECRET-KEY-1[0-9A-Z]{30,}/, "gitleaks age-secret-key", "2026-11-18"],
  ["JWT", /(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?/, "gitleaks jwt", "2026-11-18"],
  // The beginning of `-----BEGIN PRIVATE KEY-----` and its kinds, as Kubernetes encodes it.
  ["private key in base64", /LS0tLS1CRUdJTiB(?:SU0EgUFJJVkFURSBLRVkt|QUklWQVRFIEtFWS0|FQyBQUklWQVRFIEtFWS0|PUEVOU1NIIFBSSVZBVEUg)[\w+/=]{20,}/, "RFC 7468, base64 of its label", "2026-11-18"],
];

let anyForm: RegExp | undefined;

/** Replaces what has one of the forms. A form starts where a word starts. Looks only at long words that are not plain
 *  ones, because the forms are many. */
export function replaceTokens(text: string, replace: (token: string) => string): string {
  const patterns = (): string => tokenForms.map(([, pattern]) => pattern.source).join("|");
  anyForm ??= new RegExp(`(?<![A-Za-z0-9])(?:${patterns()})`, "g");
  const forms = anyForm;
  return text.replace(/(?<![\w.~+/=:$-])[\w.~+/=:$-]{15,}/g, (word, at: number) => {
    if (!/\d|[A-Z]{8}|[A-Za-z]{20}/.test(word)) return word;
    // In a JSON string, `\n` stands before the word.
    const start = text[at - 1] === "\\" ? 1 : 0;
    return word.slice(0, start) + word.slice(start).replace(forms, replace);
  });
}
