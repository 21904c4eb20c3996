package statuspage

import (
	"crypto/sha512"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// minSecret is how many bytes the secret of a token has at least.
const minSecret = 16

// Token returns an [Options.View] for those that know a secret, such as the text of
// crypto/rand.Text. A secret of less than 16 bytes is an error.
//
// A script sends the header "Authorization: Bearer SECRET". A person opens the page with
// ?token=SECRET once: the answer sets a cookie and redirects to the same address without the
// token. The cookie does not contain the secret, and the browser forgets it when it ends. A
// request with neither gets status 401. Another View may call the returned function.
func Token(secret string) (func(*http.Request) bool, error) {
	if len(secret) < minSecret {
		return nil, fmt.Errorf("statuspage: Token needs a secret of at least %d bytes, and this one has %d", minSecret, len(secret))
	}
	sum := sha512.Sum512([]byte(secret))
	// Browsers send a cookie to all ports of a host. So each token has a name of its own.
	cookie := http.Cookie{Name: fmt.Sprintf("statuspage-%x", sum[:8]), Value: fmt.Sprintf("%x", sum[32:]), HttpOnly: true, SameSite: http.SameSiteLaxMode}
	isSecret := func(given string) bool {
		other := sha512.Sum512([]byte(given))
		return subtle.ConstantTimeCompare(sum[:], other[:]) == 1
	}
	return func(r *http.Request) bool {
		scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if strings.EqualFold(scheme, "Bearer") && isSecret(bearer) {
			return true
		}
		if c, err := r.Cookie(cookie.Name); err == nil && subtle.ConstantTimeCompare([]byte(c.Value), []byte(cookie.Value)) == 1 {
			return true
		}
		a, _ := r.Context().Value(admission{}).(*admission)
		if a == nil {
			return false
		}
		*a = admission{failure: failure{http.StatusUnauthorized, "this request has no valid token: open the link with ?token= again, or send the header Authorization: Bearer"}}
		if values := r.URL.Query(); isReading(r) && isSecret(values.Get("token")) {
			values.Del("token")
			to := url.URL{Path: "./", RawQuery: values.Encode()} // relative, because the page may have a prefix
			if !strings.HasSuffix(r.URL.Path, "/") {
				to.Path += path.Base(r.URL.Path)
			}
			given := cookie
			given.Secure = r.TLS != nil
			*a = admission{failure: failure{http.StatusSeeOther, "go on without the token"}, cookie: given.String(), location: to.String()}
		}
		return false
	}, nil
}

// An admission is what a View of this package wants a refused request to be answered with.
type admission struct {
	failure
	cookie, location string
}
