package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway/slipway/internal/bootstrap/material"
	"github.com/slipway/slipway/internal/cli"
	"github.com/slipway/slipway/internal/profilefile"
)

// common are the flags that most commands share.
type common struct {
	profile, build, key, state, secrets, ageKey, repo string
	output                                            *cli.Output
}

// add adds the flags; what a command does not use it does not show.
func (c *common) add(cmd *cobra.Command, names ...string) {
	f := cmd.Flags()
	f.StringVarP(&c.profile, "profile", "p", "profiles/lab.yaml", "profile of the environment")
	c.output = cli.OutputFlag(cmd)
	for _, name := range names {
		switch name {
		case "build":
			f.StringVar(&c.build, "build", "", "directory of the finished build (default out/ENVIRONMENT)")
			f.StringVar(&c.key, "key", "", "public key that must have signed the build (default ~/.config/slipway/sign_ed25519.pub)")
		case "state":
			f.StringVar(&c.state, "state", "", "directory for kubeconfig, snapshots and trusted host keys (default ~/.local/state/slipway/ENVIRONMENT)")
		case "secrets":
			f.StringVar(&c.secrets, "secrets", "", "SOPS file with the cluster's secrets (default ENVIRONMENT.secrets.yaml beside the profile)")
			f.StringVar(&c.ageKey, "age-key", "", "age identity that opens it (default: where sops looks, $SOPS_AGE_KEY_FILE and others)")
		case "repo":
			f.StringVar(&c.repo, "repo", "", "checked-out GitOps repository to read instead of fetching flux.url")
		}
	}
}

// settings loads the profile and resolves the places.
func (c *common) settings() (material.Settings, error) {
	p, err := profilefile.Load(c.profile)
	if err != nil {
		return material.Settings{}, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return material.Settings{}, fmt.Errorf("finding the home directory: %w", err)
	}
	environment := p.Cluster.Environment
	state := cmp.Or(os.Getenv("XDG_STATE_HOME"), filepath.Join(home, ".local/state"))
	return material.Settings{
		Cluster: p.Cluster, Profile: c.profile,
		Build: cmp.Or(c.build, filepath.Join("out", environment)), Key: c.key,
		State:   cmp.Or(c.state, filepath.Join(state, "slipway", environment)),
		Secrets: c.secrets, AgeKey: c.ageKey, Repo: c.repo,
		Getenv: os.Getenv, Home: home, Now: time.Now,
	}, nil
}
