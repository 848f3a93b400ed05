// Package manifests holds the Kubernetes manifests that are shipped to what an API server says of them: this is its own
// code for decoding, defaults and validation.
package manifests

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
)

const folder = "../../../deploy"

// strategy is what the API server does before it stores an object.
type strategy interface {
	PrepareForCreate(ctx context.Context, obj runtime.Object)
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList
}

func strategyOf(obj runtime.Object) strategy {
	switch obj.(type) {
	case *batch.CronJob:
		return cronjob.Strategy
	case *batch.Job:
		return job.Strategy
	case *apps.Deployment:
		return deployment.Strategy
	case *core.Service:
		return service.Strategy
	case *core.ConfigMap:
		return configmap.Strategy
	case *core.PersistentVolumeClaim:
		return persistentvolumeclaim.Strategy
	case *networking.NetworkPolicy:
		return networkpolicy.Strategy
	}
	return nil
}

// check decodes one document as kubectl apply --validate=strict would, and validates it.
func check(doc []byte) (runtime.Object, error) {
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	versioned, _, err := codecs.UniversalDeserializer().Decode(doc, nil, nil)
	if err != nil {
		return nil, err
	}
	legacyscheme.Scheme.Default(versioned)
	obj, err := legacyscheme.Scheme.UnsafeConvertToVersion(versioned, runtime.InternalGroupVersioner)
	if err != nil {
		return nil, err
	}
	s := strategyOf(obj)
	if s == nil {
		return nil, fmt.Errorf("%T: no manifest of this kind was expected", obj)
	}
	ctx := request.WithNamespace(context.Background(), "default")
	of, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	of.SetNamespace("default") // this and the next two are filled in by the server before it validates
	of.SetUID("00000000-0000-0000-0000-000000000000")
	if headless, ok := obj.(*core.Service); ok && headless.Spec.ClusterIP == core.ClusterIPNone {
		headless.Spec.ClusterIPs = []string{core.ClusterIPNone}
	}
	s.PrepareForCreate(ctx, obj)
	return obj, s.Validate(ctx, obj).ToAggregate()
}

// documents are all objects of the shipped files, by file and place.
func documents(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(folder + "/kubernetes/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	out := map[string][]byte{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		reader := yaml.NewDocumentDecoder(f)
		buffer := make([]byte, 1<<20)
		for i := 0; ; i++ {
			n, err := reader.Read(buffer)
			if err != nil {
				break
			}
			out[fmt.Sprintf("%s#%d", filepath.Base(path), i)] = slices.Clone(buffer[:n])
		}
		reader.Close()
	}
	return out
}

func TestManifestsAreTaken(t *testing.T) {
	kinds := map[string]int{}
	for name, doc := range documents(t) {
		obj, err := check(doc)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		kinds[fmt.Sprintf("%T", obj)]++
		if pod := podOf(obj); pod != nil {
			checkPod(t, name, pod)
		}
		switch o := obj.(type) {
		case *batch.Job:
			checkJob(t, name, &o.Spec)
		case *batch.CronJob:
			checkJob(t, name, &o.Spec.JobTemplate.Spec)
			if o.Spec.ConcurrencyPolicy != batch.ForbidConcurrent || o.Spec.StartingDeadlineSeconds == nil {
				t.Errorf("%s: two may run at once, or a missed start is lost", name)
			}
		}
	}
	if kinds["*batch.Job"] < 8 || kinds["*batch.CronJob"] != 1 || kinds["*apps.Deployment"] != 2 {
		t.Errorf("too little was looked at: %v", kinds)
	}
}

func podOf(obj runtime.Object) *core.PodSpec {
	switch o := obj.(type) {
	case *batch.Job:
		return &o.Spec.Template.Spec
	case *batch.CronJob:
		return &o.Spec.JobTemplate.Spec.Template.Spec
	case *apps.Deployment:
		return &o.Spec.Template.Spec
	}
	return nil
}

// checkPod holds each pod to what docs/deploy.md promises.
func checkPod(t *testing.T, name string, p *core.PodSpec) {
	t.Helper()
	fault := func(bad bool, what string) {
		if bad {
			t.Errorf("%s: %s", name, what)
		}
	}
	fault(p.AutomountServiceAccountToken == nil || *p.AutomountServiceAccountToken, "has a token of the API server")
	fault(p.EnableServiceLinks == nil || *p.EnableServiceLinks, "services become TAILGATE_ variables, which are flags")
	sc := p.SecurityContext
	fault(sc == nil || sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot || sc.SeccompProfile == nil, "may run as root, or without seccomp")
	fault(sc.FSGroupChangePolicy == nil || *sc.FSGroupChangePolicy != core.FSGroupChangeOnRootMismatch, "opens the keys to the group")
	for _, c := range p.Containers {
		s := c.SecurityContext
		fault(s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem, "can write to its image")
		fault(s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation, "may gain privileges")
		fault(s == nil || s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL"), "keeps capabilities")
		fault(c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.CPU().IsZero(), "has no resources")
		fault(len(c.Command) > 0, "does not use the image's entry point")
		fault(!slices.ContainsFunc(c.VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == "/tmp" }), "has no /tmp to write to")
		for _, e := range c.Env {
			secret := strings.Contains(e.Name, "KEY") || strings.Contains(e.Name, "PASSWORD")
			fault(secret && !strings.HasSuffix(e.Name, "_FILE"), e.Name+" is a secret in the environment")
		}
	}
	mounted := func(path string) bool {
		return slices.ContainsFunc(p.Containers[0].VolumeMounts, func(m core.VolumeMount) bool { return m.MountPath == path })
	}
	switch p.Containers[0].Args[0] {
	case "keys", "refresh", "ingest", "publish":
	default:
		fault(mounted("/keys"), "can read the keys and has no use for them")
	}
}

// checkJob looks whether what another try cannot mend ends a job, and what belongs to one index ends that index.
func checkJob(t *testing.T, name string, j *batch.JobSpec) {
	t.Helper()
	args := j.Template.Spec.Containers[0].Args
	if slices.Contains(args, "--barrier") {
		if *j.BackoffLimit != 0 || *j.Parallelism != *j.Completions {
			t.Errorf("%s: a shard of a replay must not be tried again, and all must run at once", name)
		}
		return
	}
	if args[0] == "keys" {
		return
	}
	ends := map[int32]batch.PodFailurePolicyAction{}
	if j.PodFailurePolicy != nil {
		for _, rule := range j.PodFailurePolicy.Rules {
			if rule.OnExitCodes != nil {
				for _, code := range rule.OnExitCodes.Values {
					ends[code] = rule.Action
				}
			}
		}
	}
	final := []int32{2, 3, 6, 7}
	if args[0] == "analyze" {
		final = []int32{2, 3, 4, 5, 6}
	}
	for _, code := range final {
		if a := ends[code]; a != batch.PodFailurePolicyActionFailJob && a != batch.PodFailurePolicyActionFailIndex {
			t.Errorf("%s: exit %d is tried again", name, code)
		}
	}
	for _, code := range []int32{0, 1, 8, 9, 130, 137, 143} {
		if a, ok := ends[code]; ok {
			t.Errorf("%s: exit %d is %s", name, code, a)
		}
	}
	if indexed := j.CompletionMode != nil && *j.CompletionMode == batch.IndexedCompletion; indexed != (j.BackoffLimitPerIndex != nil) {
		t.Errorf("%s: indexes have no limit of their own", name)
	}
}

// The check must find what is wrong: a manifest is spoilt in one place at a time.
func TestSpoiltManifestsAreRefused(t *testing.T) {
	data, err := os.ReadFile(folder + "/kubernetes/refresh.yaml")
	if err != nil {
		t.Fatal(err)
	}
	good := string(data)
	for _, c := range [][3]string{
		{"concurrencyPolicy: Forbid", "concurencyPolicy: Forbid", "unknown field"},
		{`schedule: "30 2 * * *"`, `schedule: "77 2 * * *"`, "end of range (77) above maximum (59)"},
		{"restartPolicy: Never", "restartPolicy: Always", "restartPolicy"},
		{"memory: 4Gi", "memory: 4GiB", "quantities must match"},
		{"name: tailgate-refresh", "name: Tailgate_Refresh", "a lowercase RFC 1123"},
		{"containerName: tailgate", "containerName: other", "must be one of the container or initContainer names"},
		{"[2, 3, 6, 7]", "[2, 0]", "must not be 0"},
		{"mountPath: /data", "mountPath: /tmp", "must be unique"},
		{"claimName: tailgate-data", "claimName: ''", "claimName"},
		{"timeZone: Etc/UTC", "timeZone: Etc/Nowhere", "unknown time zone"},
	} {
		if !strings.Contains(good, c[0]) {
			t.Fatalf("%s is not in the file", c[0])
		}
		if _, err := check([]byte(strings.Replace(good, c[0], c[1], 1))); err == nil || !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%s: %v", c[1], err)
		}
	}
	indexed, err := os.ReadFile(folder + "/kubernetes/hours.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, _, _ := strings.Cut(string(indexed), "---\n")
	spoilt := strings.Replace(doc, "completionMode: Indexed", "completionMode: NonIndexed", 1)
	if _, err := check([]byte(spoilt)); err == nil || !strings.Contains(err.Error(), "backoffLimitPerIndex") {
		t.Errorf("a limit by index without indexes: %v", err)
	}
}

// The line of /etc/cron.d has a schedule that cron takes, a user, and a command.
func TestCronLine(t *testing.T) {
	data, err := os.ReadFile(folder + "/cron/tailgate-refresh")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		name, _, assigned := strings.Cut(line, "=")
		if line == "" || strings.HasPrefix(line, "#") || assigned && !strings.ContainsAny(name, " *") {
			continue
		}
		lines++
		fields := strings.Fields(line)
		if len(fields) < 7 || fields[5] != "tailgate" || !strings.HasSuffix(fields[6], "flock") && !strings.HasSuffix(fields[6], "tailgate") {
			t.Errorf("%q has no user or command", line)
			continue
		}
		if _, err := cron.ParseStandard(strings.Join(fields[:5], " ")); err != nil {
			t.Error(err)
		}
		if strings.Contains(line, "%") {
			t.Errorf("%q: cron makes line ends of percent signs", line)
		}
	}
	if lines != 1 || !strings.HasSuffix(string(data), "\n") {
		t.Errorf("%d lines, the last of which must end: cron leaves out one that does not", lines)
	}
}
