package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ephemeralgo/ephemeral/atoms/ratelimit"
	"github.com/ephemeralgo/ephemeral/atoms/retry"
	"github.com/ephemeralgo/ephemeral/core"
)

// A provider is a client of a service, and keeps to its limits.
type provider struct {
	name, url       string
	client          *http.Client
	limits          *ratelimit.Group
	estimated, used atomic.Int64 // tokens of the requests that had an answer
}

// newProvider makes a client. A bucket lets Burst + Rate * window pass in a window. Here
// this is five sixths of the limit: the rest allows for requests that are under way for
// different times.
func newProvider(name, base string, client *http.Client, sink *core.Sink) *provider {
	limits := core.Must(ratelimit.NewGroup([]ratelimit.Limit{
		{Name: name + ".requests", Rate: core.Rate{PerSecond: maxRequests / 2.0 / window.Seconds(), Burst: maxRequests / 3}},
		{Name: name + ".tokens", Rate: core.Rate{PerSecond: maxTokens / 2.0 / window.Seconds(), Burst: maxTokens / 3}},
	}, ratelimit.Options{Name: name, Sink: sink}))
	return &provider{name: name, url: base + "/" + name, client: client, limits: limits}
}

func (p *provider) embed(ctx context.Context, texts []string) ([][]float64, error) {
	out, err := p.call(ctx, request{Texts: texts})
	return out.Vectors, err
}

func (p *provider) ask(ctx context.Context, text string) (string, error) {
	out, err := p.call(ctx, request{Texts: []string{text}, Answer: 60})
	return out.Label, err
}

// call waits until the limits let the request pass, and sends it. If the request fails, it is
// unknown how much it has used, so the reserved tokens stay taken.
func (p *provider) call(ctx context.Context, in request) (out response, err error) {
	estimate := in.Answer
	for _, text := range in.Texts {
		estimate += len(text) / 4 // a token has about four bytes
	}
	reserved := p.limits.Reserve(1, estimate)
	if err = reserved.Wait(ctx); err != nil {
		return out, err
	}
	body := core.Must(json.Marshal(in))
	req := core.Must(http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body)))
	res, err := p.client.Do(req)
	if err != nil {
		return out, err // the next attempt may succeed
	}
	defer res.Body.Close()
	if after, ok := retry.ParseRetryAfter(res.Header.Get("Retry-After"), time.Now()); ok {
		p.limits.PauseFor(after) // stops all requests to this provider
		return out, retry.After(fmt.Errorf("llm: %s: %s", p.name, res.Status), after)
	}
	if res.StatusCode != http.StatusOK {
		return out, retry.Permanent(fmt.Errorf("llm: %s: %s", p.name, res.Status))
	}
	if err = json.NewDecoder(res.Body).Decode(&out); err != nil {
		return out, err
	}
	reserved.Adjust(1, out.Tokens) // the rest goes back, or the missing tokens become a debt
	p.estimated.Add(int64(estimate))
	p.used.Add(int64(out.Tokens))
	return out, nil
}
