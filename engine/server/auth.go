package server

import (
	"cmp"
	"crypto/sha256"
	"net"
	"net/netip"
	"strings"

	"sbx/engine"
)

// maxToken is longer than any token; what is longer isn't looked at.
const maxToken = 512

const wrongTokenHint = "it may have been revoked or have expired: use another"

// bearer is the door of TCP. A token is taken from the Authorization header
// only: one in a URL would end up in logs and histories.
func (s *Server) bearer(c *call) error {
	token, ok := bearerToken(c.r.Header.Values("Authorization"))
	if !ok {
		return engine.Errorf(engine.Unauthorized, "this needs a token").
			WithHint("send the header Authorization: Bearer …")
	}
	from := address(c.r.RemoteAddr)
	hash := sha256.Sum256([]byte(token))
	if wait := s.brake.wait(from, hash); wait > 0 {
		return engine.Errorf(engine.Unauthorized, "too many wrong tokens from %s", from).After(wait)
	}
	if s.Authenticate == nil {
		return engine.Errorf(engine.Unauthorized, "this engine takes no tokens")
	}
	actor, role, err := s.Authenticate(c.r.Context(), token)
	if err != nil {
		if code := engine.AsCode(err); code == engine.Unauthorized || code == engine.NotFound {
			s.brake.wrong(from, hash)
			return engine.Errorf(engine.Unauthorized, "the token is not valid").WithHint("%s", cmp.Or(engine.Hint(err), wrongTokenHint))
		}
		return err
	}
	s.brake.right(hash)
	if actor.From == "" {
		actor.From = from
	}
	c.actor, c.role, c.token = actor, role, token
	return nil
}

func bearerToken(headers []string) (string, bool) {
	if len(headers) != 1 {
		return "", false
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	token = strings.TrimSpace(token)
	return token, ok && strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= maxToken
}

// address is who is counted together: an IPv4 address, or the /64 that one
// customer has of IPv6.
func address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() && !ip.IsLoopback() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
