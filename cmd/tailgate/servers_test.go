package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// startkafka NAME [USER PASSWORD]: starts an in-process broker with the topic logs (4 partitions) until the script
// ends; $NAME is the topic's URL. With a user it wants SCRAM-SHA-512.
func startkafka(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: startkafka NAME [USER PASSWORD]")
	}
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(4, "logs")}
	if len(args) == 3 {
		opts = append(opts, kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", args[1], args[2]))
	}
	c, err := kfake.NewCluster(opts...)
	ts.Check(err)
	ts.Defer(c.Close)
	ts.Setenv(args[0], "kafka://"+c.ListenAddrs()[0]+"/logs")
}

// produce URL FILE [USER PASSWORD]: sends each line of FILE as a record, by turns to each partition.
func produce(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 && len(args) != 4 {
		ts.Fatalf("usage: produce URL FILE [USER PASSWORD]")
	}
	addr, topic, _ := strings.Cut(strings.TrimPrefix(args[0], "kafka://"), "/")
	opts := []kgo.Opt{kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if len(args) == 4 {
		opts = append(opts, kgo.SASL(scram.Auth{User: args[2], Pass: args[3]}.AsSha512Mechanism()))
	}
	client, err := kgo.NewClient(opts...)
	ts.Check(err)
	defer client.Close()
	var records []*kgo.Record
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		records = append(records, &kgo.Record{Partition: int32(len(records) % 4), Value: []byte(strings.TrimSpace(line))})
	}
	ts.Check(client.ProduceSync(context.Background(), records...).FirstErr())
}

// starts3: starts an in-process S3 server with the bucket b until the script ends, and points the environment at it.
func starts3(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: starts3")
	}
	backend := s3mem.New()
	ts.Check(backend.CreateBucket("b"))
	server := httptest.NewServer(gofakes3.New(backend).Server())
	ts.Defer(server.Close)
	for name, value := range map[string]string{
		"TAILGATE_S3_ENDPOINT": server.URL, "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_CONFIG_FILE": os.DevNull,
	} {
		ts.Setenv(name, value)
	}
	ts.Setenv("S3_OBJECTS", server.URL+"/b")
}

// s3put KEY FILE: puts FILE into the bucket of starts3.
func s3put(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: s3put KEY FILE")
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPut, ts.Getenv("S3_OBJECTS")+"/"+args[0], strings.NewReader(ts.ReadFile(args[1])))
	ts.Check(err)
	resp, err := new(http.Client).Do(req)
	ts.Check(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		ts.Fatalf("putting %s: %s", args[0], resp.Status)
	}
}

// startgateway NAME DIR: starts what takes the pushes of metrics until the script ends; $NAME is its URL, and what is put
// there is a file below DIR.
func startgateway(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: startgateway NAME DIR")
	}
	dir := ts.MkAbs(args[1])
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		path := filepath.Join(dir, filepath.FromSlash(r.URL.Path))
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o755)
		}
		if err == nil {
			err = os.WriteFile(path, body, 0o644)
		}
		if err != nil || r.Method != http.MethodPut {
			http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// freeport NAME: sets $NAME to an address of this machine that nobody listens at.
func freeport(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: freeport NAME")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	defer l.Close()
	ts.Setenv(args[0], l.Addr().String())
}
