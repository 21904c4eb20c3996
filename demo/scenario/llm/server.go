package llm

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// The limits of each provider in any span of window. Real services use a minute.
const (
	window      = 500 * time.Millisecond
	maxRequests = 9
	maxTokens   = 450
)

type request struct {
	Texts  []string
	Answer int // largest number of tokens in the answer; 0: the request is for vectors
}

type response struct {
	Vectors [][]float64
	Label   string
	Tokens  int // tokens of the texts and the answer
}

// models is the fake server. Its paths are the names of the providers. The embedder is
// overloaded at its third request. Alpha fails at its sixth and seventh request.
type models struct {
	mu       sync.Mutex
	accounts map[string]*account
}

// An account is what the server has counted for a provider.
type account struct {
	requests, failed, tokens int
	mostRequests, mostTokens int       // in any window
	last                     []charge  // requests of the last window
	busy                     time.Time // no request should come before this time
	early                    int       // requests that came too early
}

type charge struct {
	at     time.Time
	tokens int
}

func (m *models) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out := answer(in)
	status := m.admit(path.Base(r.URL.Path), out.Tokens)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	if status == http.StatusOK {
		time.Sleep(60 * time.Millisecond) // a model thinks
		json.NewEncoder(w).Encode(out)
	}
}

// admit counts a request, and decides about its status.
func (m *models) admit(name string, tokens int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, now := m.accounts[name], time.Now()
	a.requests++
	status := http.StatusOK
	switch {
	case name == "embedder" && a.requests == 3:
		status, a.busy = http.StatusServiceUnavailable, now.Add(time.Second)
	case now.Before(a.busy):
		status = http.StatusServiceUnavailable
		a.early++
	case name == "alpha" && (a.requests == 6 || a.requests == 7):
		status = http.StatusInternalServerError
	}
	if status != http.StatusOK {
		a.failed++
		tokens = 0
	}
	a.tokens += tokens
	a.last = slices.DeleteFunc(a.last, func(c charge) bool { return now.Sub(c.at) >= window })
	a.last = append(a.last, charge{now, tokens})
	sum := 0
	for _, c := range a.last {
		sum += c.tokens
	}
	a.mostRequests, a.mostTokens = max(a.mostRequests, len(a.last)), max(a.mostTokens, sum)
	return status
}

// vocabulary are the words that have a place in a vector.
var vocabulary = strings.Fields("charged twice log account parcel note street")

func answer(in request) (out response) {
	for _, text := range in.Texts {
		out.Tokens += 1 + len(strings.Fields(text))*4/3
		if in.Answer > 0 {
			out.Label = "delivery"
			out.Tokens += in.Answer * 2 / 3
			continue
		}
		vector := make([]float64, len(vocabulary))
		for i, word := range vocabulary {
			vector[i] = float64(strings.Count(text, word))
		}
		out.Vectors = append(out.Vectors, vector)
	}
	return out
}
