package analyze

import "testing"

// A stored bucket's name is that of the report; what is no bucket stands as it is.
func TestBucketNames(t *testing.T) {
	for by, want := range map[string]string{
		`{}`: "all requests", `{"class":"chat"}`: "class chat", `{"class":null}`: "class unknown",
		`{"tenant":"a","input_length":[1024,null]}`: "tenant a, input_length >= 1024", `{"input_length":[null,5]}`: "input_length < 5",
		`{"time_s":[300,600]}`: "time [5m, 10m)", `{"time_s":[300,null]}`: "time_s >= 300",
		`{"class":7}`: `{"class":7}`, `[1]`: `[1]`, `{"class":`: `{"class":`, ``: ``, `{"a":[1,2,3]}`: "a [1, 2)",
	} {
		if got := bucketName([]byte(by)); got != want {
			t.Errorf("%s is called %q, want %q", by, got, want)
		}
	}
}
