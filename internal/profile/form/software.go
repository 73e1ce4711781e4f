package form

import (
	"net/url"
	"strings"
)

// software holds the forms of versions, URLs and what belongs to Kubernetes.
func software() []Form {
	return []Form{
		{Name: "version", Pattern: `^[0-9]+\.[0-9]+\.[0-9]+$`, Explain: explainVersion, Want: "a version, such as 1.20.2"},
		{Name: "k3sversion", Pattern: `^v1\.[0-9]+\.[0-9]+\+k3s[0-9]+$`, Explain: explainK3sVersion,
			Want: "a k3s version, such as v1.34.4+k3s1"},
		{Name: "k3skey", Pattern: `^[a-z][a-z0-9-]*$`, Explain: explainK3sKey, Want: "a key of k3s's config.yaml"},
		{Name: "url", Pattern: `^https?://[^\s@?#]+$`, Check: checkURL, Explain: explainURL, Want: "an http or https URL"},
		{Name: "proxy", Pattern: `^https?://[^\s@?#/]+/?$`, Check: checkURL, Explain: explainURL,
			Want: "the URL of a proxy, such as http://proxy.example.org:3128"},
		{Name: "giturl", Pattern: `^(https://[^\s@?#]+|ssh://([a-z_][a-z0-9_-]*@)?[^\s@?#]+)$`, Check: checkURL, Explain: explainGitURL,
			Want: "the URL of a git repository, ssh:// or https://"},
		{Name: "registry", Pattern: `^(\*|` + domain + `(:[0-9]{1,5})?)$`, Explain: explainRegistry,
			Want: "a registry host as in image references, such as docker.io"},
	}
}

func explainVersion(text string) *Problem {
	if rest, ok := strings.CutPrefix(text, "v"); ok {
		return &Problem{"a version with a v: " + Quote(text), "write " + rest}
	}
	return &Problem{"not a version: " + Quote(text), "name one release in full, such as 1.20.2; ranges and latest cannot be pinned"}
}

func explainK3sVersion(text string) *Problem {
	if fixed := strings.Replace(text, "-k3s", "+k3s", 1); fixed != text {
		return &Problem{"a k3s version in the form of its image tag: " + Quote(text), "write " + fixed}
	}
	return nil
}

func explainK3sKey(text string) *Problem {
	if rest, ok := strings.CutSuffix(text, "+"); ok {
		return &Problem{"a key that appends to a list: " + Quote(text), "values here are single texts; drop-ins on the node append to lists (" + rest + "+)"}
	}
	if rest := strings.TrimLeft(text, "-"); rest != text {
		return &Problem{"dashes before a key: " + Quote(text), "write " + rest}
	}
	return nil
}

func checkURL(text string) *Problem {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" {
		return &Problem{Message: "not a URL: " + Quote(text)}
	}
	if port := u.Port(); port != "" {
		return checkHostPort(u.Host)
	}
	return checkHost(u.Hostname())
}

// explainURL never repeats the text when it may hold a password.
func explainURL(text string) *Problem {
	switch {
	case strings.Contains(text, "@"):
		return &Problem{"credentials in a URL", "profiles are in git; leave the user and password out"}
	case !strings.Contains(text, "://"):
		return &Problem{"a URL without a scheme: " + Quote(text), "write http://" + text + " or https://" + text}
	}
	return nil
}

func explainGitURL(text string) *Problem {
	user, rest, scp := strings.Cut(text, "@")
	switch {
	case scp && !strings.Contains(text, "://") && !strings.ContainsAny(user, ":/"):
		return &Problem{"a repository in scp form: " + Quote(text), "write ssh://" + user + "@" + strings.Replace(rest, ":", "/", 1)}
	case scp:
		return &Problem{"credentials in a URL", "profiles are in git; the deploy key comes from the environment's SOPS file"}
	case strings.HasPrefix(text, "http://"), strings.HasPrefix(text, "git://"):
		return &Problem{"an unprotected connection: " + Quote(text), "what Flux applies must come over ssh:// or https://"}
	}
	return nil
}

func explainRegistry(text string) *Problem {
	if strings.Contains(text, "://") {
		_, host, _ := strings.Cut(text, "://")
		return &Problem{"a URL where a registry's name belongs: " + Quote(Redact(text)), "write " + strings.TrimRight(host[strings.LastIndex(host, "@")+1:], "/")}
	}
	return nil
}
