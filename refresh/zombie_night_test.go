package refresh_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// writeKind names what a request that changes something does, without what tells two of a kind apart; "" = it changes
// nothing that is read, or it is a lease's: that is given under a condition of its own.
func writeKind(r *http.Request, prefix string) string {
	_, key, ok := strings.Cut(r.URL.Path, prefix+"/")
	if !ok || r.Method == http.MethodGet || r.Method == http.MethodHead || key == "state/lease.json" || strings.Contains(path.Base(key), "probe") {
		return ""
	}
	q := r.URL.Query()
	switch {
	case q.Has("uploads") || r.Method == http.MethodPut && q.Has("partNumber") || r.Method == http.MethodDelete && q.Has("uploadId"):
		return "" // an upload is seen when it is completed
	case r.Method == http.MethodPost:
		return "COMPLETE " + nameKind(key)
	case r.Header.Get("X-Amz-Copy-Source") != "":
		return "COPY " + nameKind(key)
	}
	return r.Method + " " + nameKind(key)
}

// tokens are what names hold beside numbers: keyed tokens, digests, and which of the tables or traces of a day it is.
var tokens = regexp.MustCompile(`k_[a-z0-9]+|[0-9a-f]{16}|profile_[a-z_]+|[a-z_]+(@[0-9.x]+)?\.jsonl`)

func nameKind(key string) string { return kindOf(tokens.ReplaceAllString(key, "N")) }

// zombieCase is a run whose lease is lost while one of its writes is under way.
type zombieCase struct {
	kind string // of the write
	nth  int    // of the kind, from 0
	race bool   // it arrives just before the other run's own write of the same object, else when that has ended
}

// zombieNight is a bucket before a night, and what the night is.
type zombieNight struct {
	log    *gatewayLog
	server *s3Server
	night  night
	before []stored
	keys   string // folder
	want   map[string]string
}

// zombieSettings are those of the nights that are disturbed again and again: little work, and something that expires.
const zombieSettings = "traces: {classes: [all]}\nretention: {traces: 1d}\n"

// newZombieNight does the first of two nights, and the second one undisturbed; it lists what is written in it.
func newZombieNight(t *testing.T) (z *zombieNight, cases []zombieCase) {
	t.Helper()
	g := simulatedInBucket()
	g.days, g.veryLate, g.empty, g.perDay = 2, false, nil, min(g.perDay, 120)
	if os.Getenv(envS3) != "" {
		g.perDay = 60
	}
	log := newGatewayLog(t, g)
	server := newS3Server(t)
	z = &zombieNight{log: log, server: server, night: log.nightOf(1)}
	s := inBucket(t, log, server)
	s.More = zombieSettings
	if _, err := s.run(t.Context(), log.nightOf(0), nil); err != nil {
		t.Fatal(err)
	}
	z.before, z.keys = s.objects(t, ""), filepath.Join(t.TempDir(), "keys")
	copyKeys(t, s.keys(), z.keys)
	count := map[string]int{}
	var mu sync.Mutex
	s.Server = server.door(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if kind := writeKind(r, "first"); kind != "" {
			cases = append(cases, zombieCase{kind: kind, nth: count[kind]})
			count[kind]++
		}
	})
	if _, err := s.run(t.Context(), z.night, nil); err != nil {
		t.Fatal(err)
	}
	z.want = s.tables(t)
	mu.Lock()
	defer mu.Unlock()
	return z, slices.Clone(cases)
}

// copyKeys gives one site the keys that another one has left.
func copyKeys(t *testing.T, from, to string) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(to), os.Mkdir(to, 0o700)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, e.Name()), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// site is a copy of what was there before the night.
func (z *zombieNight) site(t *testing.T, name string) *site {
	t.Helper()
	s := newSite(t, z.log)
	copyKeys(t, z.keys, s.keys())
	s.More, s.Bucket, s.Server = zombieSettings, "s3://"+z.server.name+"/"+name, z.server.door(t, func(http.ResponseWriter, *http.Request) {})
	b, err := s.open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range z.before {
		if err := b.Replace(t.Context(), o.key, o.data); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// hold is a door that lets one write wait.
type hold struct {
	c      zombieCase
	prefix string
	mu     sync.Mutex
	seen   int
	path   string
	held   chan struct{} // closed when the write has come
	free   chan struct{} // closed to let it go on
	landed chan struct{} // closed when it was answered
}

func (h *hold) door(behind http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		mine := writeKind(r, h.prefix) == h.c.kind
		if mine {
			h.seen++
			mine = h.seen == h.c.nth+1
		}
		h.mu.Unlock()
		if mine {
			h.path = r.URL.Path
			close(h.held)
			<-h.free
			defer close(h.landed)
		}
		behind.ServeHTTP(w, r)
	})
}

// run lets a zombie come back in the middle of one write, and tells how both runs ended.
func (z *zombieNight) run(t *testing.T, name string, c zombieCase) (zombieErr, heirErr error) {
	t.Helper()
	s := z.site(t, name)
	h := &hold{c: c, prefix: name, held: make(chan struct{}), free: make(chan struct{}), landed: make(chan struct{})}
	zombie, direct := *s, s.Server
	held := &s3Server{behind: h.door(z.server.behind)}
	zombie.Server = held.door(t, func(http.ResponseWriter, *http.Request) {})
	done := make(chan error, 1)
	go func() {
		_, err := zombie.run(t.Context(), z.night, nil)
		done <- err
	}()
	select {
	case <-h.held:
	case err := <-done:
		t.Fatalf("%+v: the write never came: %v", c, err)
	}
	z.expire(t, s)
	release := sync.OnceFunc(func() {
		close(h.free)
		<-h.landed
	})
	defer release()
	wrote := map[string]bool{}
	var mu sync.Mutex
	s.Server = z.server.door(t, func(_ http.ResponseWriter, r *http.Request) {
		if writeKind(r, name) == "" {
			return
		}
		_, key, _ := strings.Cut(r.URL.Path, name+"/")
		mu.Lock()
		wrote[key] = true
		mu.Unlock()
		if c.race && r.URL.Path == h.path {
			release()
		}
	})
	_, heirErr = s.run(t.Context(), z.night, nil)
	s.Server = direct
	before := s.objects(t, "")
	release()
	zombieErr = <-done
	if c.race && heirErr != nil {
		if _, err := s.run(t.Context(), z.night, nil); err != nil {
			t.Errorf("%+v: once more: %v", c, err)
		}
	} else {
		mu.Lock()
		unchanged(t, fmt.Sprintf("%+v", c), wrote, before, s.objects(t, ""))
		mu.Unlock()
	}
	sameTables(t, fmt.Sprintf("%+v", c), z.want, s.tables(t))
	return zombieErr, heirErr
}

// expire makes the lease look as it does when its owner has been silent for long enough.
func (z *zombieNight) expire(t *testing.T, s *site) {
	t.Helper()
	b, err := s.open(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Replace(t.Context(), "state/lease.json", []byte(`{"token":7,"owner":""}`+"\n")); err != nil {
		t.Fatal(err)
	}
}

// unchanged holds what a run wrote against what became of it.
func unchanged(t *testing.T, when string, wrote map[string]bool, before, after []stored) {
	t.Helper()
	had := map[string]string{}
	for _, o := range before {
		had[o.key] = string(o.data)
	}
	for _, o := range after {
		was, ok := had[o.key]
		if wrote[o.key] && (!ok || was != string(o.data)) {
			t.Errorf("%s: %s has changed", when, o.key)
		}
		delete(had, o.key)
	}
	for key := range had {
		if wrote[key] {
			t.Errorf("%s: %s is gone", when, key)
		}
	}
	if len(wrote) == 0 {
		t.Errorf("%s: the next run wrote nothing", when)
	}
}
