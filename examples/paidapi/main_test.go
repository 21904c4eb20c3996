package main

import (
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// The API refuses one call too many, and one with too many tokens.
func TestFakeAPI(t *testing.T) {
	for tokens, most := range map[string]int{"80": maxCalls, "1020": 3} {
		var api fakeAPI
		for range most + 1 {
			api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/?tokens="+tokens, nil))
		}
		if api.answers != most || api.refused != 1 {
			t.Errorf("%s tokens: %d answers, %d refused", tokens, api.answers, api.refused)
		}
	}
}

// Two processes keep the contract together. Everything is answered.
func TestContract(t *testing.T) {
	var out strings.Builder
	if err := show(&out); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^36 answers in \d+ minutes, 0 times 429\n$`).MatchString(out.String()) {
		t.Errorf("got\n%s", &out)
	}
}
