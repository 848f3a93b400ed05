package schemas

import (
	"regexp"
	"slices"
	"strings"
)

// StringRule is what a string column may hold: the dictionary of the allow-list. A value must fit one of the
// fields that are set. No column is free text: what does not come from a closed list, a key or a digest, an
// operator wrote.
type StringRule struct {
	Enum     []string // a closed list
	Tokens   string   // keyed tokens: the letters they may begin with
	Label    bool     // a label that the operator listed: models, classes
	Pattern  string   // a regular expression for ids, digests and versions that tailgate makes
	Operator bool     // the operator's own text: targets, settings, limits
}

// tokenChars is the length of a token's keyed part.
const tokenChars = 13

// IsToken tells whether v is a keyed token (a letter, "_" and 13 lower-case base32 characters) that begins with
// one of letters.
func IsToken(v, letters string) bool {
	if len(v) != 2+tokenChars || v[1] != '_' || strings.IndexByte(letters, v[0]) < 0 {
		return false
	}
	for i := 2; i < len(v); i++ {
		if c := v[i]; (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// Matcher is a rule ready for use. listed tells which labels the operator listed; nil = none.
func (r StringRule) Matcher(listed func(string) bool) func(v string) bool {
	var pattern *regexp.Regexp
	if r.Pattern != "" {
		pattern = regexp.MustCompile("^(?:" + r.Pattern + ")$")
	}
	return func(v string) bool {
		return r.Operator || IsToken(v, r.Tokens) || slices.Contains(r.Enum, v) ||
			r.Label && listed != nil && listed(v) || pattern != nil && pattern.MatchString(v)
	}
}

// Patterns of what tailgate makes itself.
const (
	patternEpoch     = `(b-\d{8}T\d{6}\.\d{6}Z)?`
	patternDigest    = `([0-9a-f]{64})?`
	patternRun       = `(sim-|\d{8}T\d{6}Z-)[0-9a-f]{12}`
	patternTokenizer = `[A-Za-z0-9_.:/-]{0,96}`
	patternMapped    = `mapped:[A-Za-z0-9_.-]{1,64}`
	patternSession   = `s_([a-z2-7]{13}#+)?\d{1,9}` // the copy of a session, or one of a trace that left the house
	patternTool      = `[0-9A-Za-z_.+-]{0,64}`
)

var (
	gateways = []string{
		"litellm", "litellm-spend", "otlp-json", "otlp-proto", "openinference", "vllm", "envoy", "apim", "openai", "kong", "higress", "apisix",
		"helicone", "bedrock", "cloudflare", "databricks",
	}
	deadReasons = []string{
		"too_big", "inflates", "schema_framed", "compressed", "bad_json", "wrong_layout", "bad_field", "missing_time",
		"implausible_time", "implausible_tokens", "not_hashable", "decoder_fault", "broken_batch",
	}
	requestStatus = []string{
		StatusOK, StatusClientError, StatusRateLimited, StatusServerError, StatusTimeout, StatusCancelled, StatusBlocked,
		StatusCacheHit, StatusUnknown,
	}
	resultStatus = []string{
		ResultOK, ResultHTTPError, ResultRateLimited, ResultTimeout, ResultTruncated, ResultReset, ResultErrorEvent, ResultEmpty,
		ResultCancelled, ResultNotSent,
	}
	classLabels = []string{ClassAgent, ClassLongContext, ClassInteractive, ClassBatch, LabelOther}
	tokenSource = StringRule{Enum: []string{TokensProvider, TokensGateway, TokensTokenizer, TokensAbsent}}
)

// StringColumns returns the rule of every string column of a table by its dotted path, lists and maps without
// their inner names; nil for a table that is not known.
func StringColumns(table string) map[string]StringRule {
	tenant := StringRule{Tokens: "t", Enum: []string{LabelOther}, Label: true}
	class := StringRule{Enum: classLabels, Label: true}
	model := StringRule{Tokens: "m", Enum: []string{"", LabelOther}, Label: true}
	session := StringRule{Tokens: "s", Pattern: patternSession, Label: true}
	run := StringRule{Pattern: patternRun}
	operator := StringRule{Operator: true}
	switch table {
	case TableRequests, TableSegment:
		return map[string]StringRule{
			"request_id": {Tokens: "r"}, "parent_request_id": {Tokens: "r"}, "clock_id": {Tokens: "c"}, "topic": {Tokens: "k"},
			"t_quality": {Enum: []string{TimeStart, TimeEndMinusDur, TimeFirstSeen, TimeLogAppend}},
			"gateway":   {Enum: gateways, Pattern: patternMapped},
			"op":        {Enum: []string{OpChat, OpCompletion, OpResponses, OpEmbedding, OpRerank, OpOther}},
			"status":    {Enum: requestStatus},
			"model":     model, "class": class, "tenant": {Tokens: "t", Enum: []string{LabelOther}}, "session": {Tokens: "s"},
			"input_tokens_source": tokenSource, "output_tokens_source": tokenSource, "cached_tokens_source": tokenSource,
			"reasoning_tokens_source": tokenSource,
			"reconciled":              {Enum: []string{ReconciledEqual, ReconciledPadded, ReconciledCut, ReconciledNone}},
			"prompt_state": {Enum: []string{PromptFull, PromptTruncated, PromptRedacted, PromptEncrypted, PromptExternal, PromptAbsent,
				PromptPrehashed}},
		}
	case TableDeadLetters:
		return map[string]StringRule{
			"topic": {Tokens: "k"}, "reason": {Enum: deadReasons}, "gateway": {Enum: gateways, Pattern: patternMapped},
			"fingerprint": {Tokens: "d", Enum: []string{""}},
		}
	case TableTrace:
		tenant.Pattern, model.Pattern = `tenant_\d{1,9}`, `model_\d{1,9}` // of traces that left the house
		return map[string]StringRule{
			"tenant": tenant, "class": class, "session": session, "model": model,
			"status": {Enum: append(slices.Clone(requestStatus), resultStatus...), Label: true},
		}
	case TableResults:
		return map[string]StringRule{
			"run_id": run, "tenant": tenant, "class": class, "session": session, "model": model,
			"phase": {Enum: []string{PhaseWarmup, PhaseMeasure, PhaseBurst, PhaseDrain}}, "status": {Enum: resultStatus}, "error_kind": {Pattern: `[a-z_]{1,40}`},
			"target": operator,
		}
	case TableRuns:
		return map[string]StringRule{
			"run_id": run, "labels.key": operator, "labels.value": operator, "model": operator, "engine": operator, "gpu": operator,
			"gpu_count": operator, "parallelism": operator, "trace_sha256": {Pattern: patternDigest}, "settings": operator,
			"gate": operator, "verdict": {Enum: verdicts()},
		}
	case TableTruth:
		return map[string]StringRule{
			"request_id": operator, "op": {Enum: []string{OpChat, OpCompletion, OpResponses}}, "status": {Enum: resultStatus},
		}
	case TableTelemetry:
		return map[string]StringRule{
			"run_id": run, "target": operator, "metric": {Pattern: `[a-z0-9_]{1,64}`}, "labels.key": {Pattern: `[a-z0-9_]{1,32}`},
			"labels.value": operator,
		}
	case TableBuckets:
		return map[string]StringRule{"run_id": run, "by": operator, "metric": {Pattern: `[a-z0-9_]{1,64}`}, "hdr_v2": {Pattern: `[A-Za-z0-9+/=]*`}}
	case TableVerdicts:
		return map[string]StringRule{
			"run_id": run, "rule": {Pattern: `[a-z0-9_]{1,64}`}, "by": operator, "limit": operator, "verdict": {Enum: verdicts()},
			"reason": operator,
		}
	case TableCapacity:
		return map[string]StringRule{
			"run_id": {Pattern: patternDigest}, "layer": {Enum: []string{"ladder", "search", "soak", "n_minus_1", "sweep", "pairs", "micro"}}, "class": withMix(class), "pattern": pattern,
			"cluster": {Enum: []string{"full", "n_minus_1", "b"}}, "folder": operator, "rule": operator, "verdict": {Enum: verdicts()},
		}
	case TableEnvelope:
		return map[string]StringRule{
			"run_id": {Pattern: patternDigest}, "class": withMix(class), "pattern": pattern, "load": {Enum: []string{"in_mix", "alone"}},
			"state": {Enum: []string{"confirmed", "inconclusive"}}, "decides": operator, "folder": operator,
			"profile_id": operator, "trace_sha256": {Pattern: patternDigest},
		}
	}
	return profileStrings(table, tenant, class, model)
}

// pattern is an arrival pattern of a capacity test.
var pattern = StringRule{Enum: []string{"real", "poisson", "smooth", "bursty"}}

func withMix(class StringRule) StringRule {
	class.Enum = append(slices.Clone(class.Enum), "mix")
	return class
}

func verdicts() []string {
	return []string{VerdictPass, VerdictFail, VerdictInvalid, VerdictInconclusive}
}

func profileStrings(table string, tenant, class, model StringRule) map[string]StringRule {
	// "*" stands for all, "" for what a trace does not tell.
	tenant.Enum = append(slices.Clone(tenant.Enum), "*", "")
	class.Enum = append(slices.Clone(class.Enum), "*", "")
	model.Enum = append(slices.Clone(model.Enum), "*")
	profileID := StringRule{Pattern: `[0-9a-f]{8,64}`, Operator: true}
	if part, ok := map[string]map[string]StringRule{
		TableProfilePart: {
			"day": {Pattern: `\d{4}-\d{2}-\d{2}`}, "view": {Enum: []string{"engine", "client"}}, "inputs_sha256": {Pattern: patternDigest},
			"tokenizer": {Pattern: patternTokenizer}, "model": model, "epoch": {Pattern: patternEpoch},
		},
		TableProfilePartRow:   {"tenant": tenant, "class": class},
		TableProfilePartBlock: {},
	}[table]; ok {
		return part
	}
	columns, ok := map[string]map[string]StringRule{
		TableProfileMeta: {
			"source": {Enum: []string{"lake", "trace", "servegen", "*"}}, "inputs_sha256": {Pattern: patternDigest},
			"tokenizer": {Pattern: patternTokenizer}, "model": model, "epoch": {Pattern: patternEpoch},
		},
		TableProfileRate: {}, TableProfileIAT: {}, TableProfileDispersion: {}, TableProfileSession: {},
		TableProfileIATFit: {
			"clock":  {Enum: []string{"raw", "op60", "op300"}},
			"dist":   {Enum: []string{"exponential", "gamma", "weibull", "lognormal", "onoff"}},
			"method": {Enum: []string{"mle", "moments"}},
		},
		TableProfileLength:     {"dim": {Enum: []string{"input", "output"}}},
		TableProfileHitCurve:   {"policy": {Enum: []string{"lru", "infinite"}}},
		TableProfileJoint:      {},
		TableProfileJointStat:  {},
		TableProfileSessStat:   {},
		TableProfileSessGap:    {"turn": {Enum: []string{"1", "2", "3-4", "5-8", "9+"}}},
		TableProfileGrowth:     {},
		TableProfileRoot:       {},
		TableProfilePopularity: {},
		TableProfileReuse:      {"unit": {Enum: []string{"requests", "us"}}},
		TableProfileCrossShare: {"tenant_a": tenant, "tenant_b": tenant},
		TableProfileLatency:    {"dim": {Enum: []string{"ttft", "duration", "tpot"}}},
		TableProfileBurst:      {"top_tenant": tenant, "top_class": class},
		TableProfileDrift:      {"ref_profile_id": profileID, "metric": {Pattern: `[a-z0-9_]{1,64}`}},
	}[table]
	if !ok {
		return nil
	}
	columns["tenant"], columns["class"] = tenant, class
	columns["profile_id"] = profileID
	return columns
}

// Footer keys of some tables only, with JSON in them.
const (
	KeySegment = "tailgate.segment"    // what a segment covers: offsets, counts, days
	KeyTrace   = "tailgate.trace_meta" // where a trace comes from
)

// FooterStrings returns the rule of every footer key. The value of KeySegment is a JSON object whose words and
// names each have to fit the rule.
func FooterStrings() map[string]StringRule {
	schemas := make([]string, 0, len(Tables()))
	for _, t := range Tables() {
		schemas = append(schemas, t.Name)
	}
	return map[string]StringRule{
		KeySchema: {Enum: schemas}, KeyVersion: {Pattern: `\d{1,4}`}, KeyTool: {Pattern: patternTool},
		KeyDefinition: {Enum: []string{Definition}}, KeySeed: {Pattern: `\d{0,20}`}, KeyBlockSize: {Pattern: `\d{0,6}`},
		KeyTokenizer: {Pattern: patternTokenizer}, KeyTemplate: {Pattern: patternTokenizer},
		KeyModels: {Tokens: "m", Pattern: `(mixed)?`}, KeyEpoch: {Pattern: patternEpoch}, KeyInputs: {Pattern: patternDigest},
		KeyTrace:   {Operator: true},
		KeySegment: {Tokens: "kdcx", Pattern: `[a-z_]{1,24}|\d{4}-\d{2}-\d{2}|` + patternMapped + `|` + patternEpoch, Enum: gateways},
	}
}
