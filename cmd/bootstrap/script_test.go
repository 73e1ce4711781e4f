package main

import (
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bootstrap": main})
}

// TestScripts runs every testdata/script/*.txtar as a person would use the program.
// Each has the repository's profiles, two age keys (KEY1 and KEY2 are files, WHO1 and
// WHO2 their recipients), and a home of its own.
func TestScripts(t *testing.T) {
	profiles, err := filepath.Abs("../../profiles")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error { return setup(e, profiles) },
	})
}

func setup(e *testscript.Env, profiles string) error {
	if err := os.CopyFS(filepath.Join(e.WorkDir, "profiles"), os.DirFS(profiles)); err != nil {
		return err
	}
	e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
	e.Setenv(envSocket, filepath.Join(e.WorkDir, "no.sock"))
	for _, n := range []string{"1", "2"} {
		key, err := age.GenerateX25519Identity()
		if err != nil {
			return err
		}
		file := filepath.Join(e.WorkDir, "key"+n)
		if err := os.WriteFile(file, []byte(key.String()+"\n"), 0o600); err != nil {
			return err
		}
		e.Setenv("KEY"+n, file)
		e.Setenv("WHO"+n, key.Recipient().String())
	}
	return nil
}
