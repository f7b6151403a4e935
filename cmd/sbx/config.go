package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	toml "github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"sbx/engine"
)

// loadConfig settles every setting: flags > environment > file > defaults.
func loadConfig(c *cli) (*config, error) {
	cfg := &config{from: map[string]string{}}
	var err error
	if cfg.home, err = dataDir(c); err != nil {
		return nil, err
	}
	file, name, err := readConfigFile(c)
	if err != nil {
		return nil, err
	}
	flags, err := setFlags(c.set)
	if err != nil {
		return nil, err
	}
	for _, s := range settings {
		v, from := settle(c, s, flags, file, name)
		if err := s.set(cfg, v); err != nil {
			return nil, engine.Errorf(engine.Invalid, "%s (from %s): %w", s.key, from, err).WithHint("%s", s.help)
		}
		cfg.from[s.key] = from
	}
	if cfg.portFrom > cfg.portTo {
		return nil, engine.Errorf(engine.Invalid, "ports.from (%d) is after ports.to (%d)", cfg.portFrom, cfg.portTo)
	}
	if c.engineURL == "" {
		c.engineURL = c.env["SBX_ENGINE"]
	}
	if c.token == "" {
		c.token = c.env["SBX_TOKEN"]
	}
	return cfg, nil
}

func settle(c *cli, s setting, flags, file map[string]string, name string) (value, from string) {
	if v, ok := flags[s.key]; ok {
		return v, "--set"
	}
	for _, env := range append([]string{s.envName()}, s.env...) {
		if v, ok := c.env[env]; ok && v != "" {
			return v, env
		}
	}
	if v, ok := file[s.key]; ok {
		return v, name
	}
	return s.initial, "default"
}

func setFlags(set []string) (map[string]string, error) {
	flags := map[string]string{}
	for _, kv := range set {
		k, v, ok := strings.Cut(kv, "=")
		if _, known := settingOf(k); !ok || !known {
			return nil, usagef("--set %s: no such setting: see sbx config", kv)
		}
		flags[k] = v
	}
	return flags, nil
}

// dataDir is SBX_HOME, else sbx in the XDG data directory.
func dataDir(c *cli) (string, error) {
	dir := c.home
	if dir == "" {
		dir = c.env["SBX_HOME"]
	}
	if dir == "" {
		base := c.env["XDG_DATA_HOME"]
		if base == "" {
			if c.env["HOME"] == "" {
				return "", engine.Errorf(engine.Invalid, "no data directory: HOME is not set").WithHint("set SBX_HOME")
			}
			base = filepath.Join(c.env["HOME"], ".local", "share")
		}
		dir = filepath.Join(base, "sbx")
	}
	return filepath.Abs(dir)
}

// configDir is where config.toml, templates and themes are looked for.
func configDir(c *cli) string {
	base := c.env["XDG_CONFIG_HOME"]
	if base == "" {
		base = filepath.Join(c.env["HOME"], ".config")
	}
	return filepath.Join(base, "sbx")
}

// readConfigFile reads config.toml flat: "heal.unconfined" → "true". A file
// that isn't there is empty, unless it was named.
func readConfigFile(c *cli) (map[string]string, string, error) {
	name, named := c.configFile, true
	if name == "" {
		name = c.env["SBX_CONFIG"]
	}
	if name == "" {
		name, named = filepath.Join(configDir(c), "config.toml"), false
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil, name, nil
	}
	if err != nil {
		return nil, name, engine.Errorf(engine.Invalid, "configuration: %w", err)
	}
	var tree map[string]any
	if err := toml.Unmarshal(data, &tree); err != nil {
		var de *toml.DecodeError
		if errors.As(err, &de) {
			line, _ := de.Position()
			return nil, name, engine.Errorf(engine.Invalid, "%s:%d: %s", name, line, de.Error())
		}
		return nil, name, engine.Errorf(engine.Invalid, "%s: %w", name, err)
	}
	flat := map[string]string{}
	if err := flatten("", tree, flat); err != nil {
		return nil, name, engine.Errorf(engine.Invalid, "%s: %w", name, err).WithHint("sbx config lists the settings")
	}
	return flat, name, nil
}

func flatten(prefix string, tree map[string]any, flat map[string]string) error {
	keys := make([]string, 0, len(tree))
	for k := range tree {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		key := prefix + k
		switch v := tree[k].(type) {
		case map[string]any:
			if err := flatten(key+".", v, flat); err != nil {
				return err
			}
			continue
		case []any:
			parts := make([]string, len(v))
			for i := range v {
				parts[i] = fmt.Sprint(v[i])
			}
			flat[key] = strings.Join(parts, ",")
		default:
			flat[key] = fmt.Sprint(v)
		}
		if _, known := settingOf(key); !known {
			return fmt.Errorf("no such setting: %s", key)
		}
	}
	return nil
}

func newConfigCmd(c *cli) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show every setting, its value and where it came from",
		Example: "  sbx config\n  sbx config --set timings.scale=0.5",
		RunE:    func(*cobra.Command, []string) error { return printConfig(c) },
	}
	addJSON(c, cmd)
	return cmd
}

type settingJSON struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
	Env   string `json:"env"`
	Help  string `json:"help"`
}

func printConfig(c *cli) error {
	flags, err := setFlags(c.set)
	if err != nil {
		return err
	}
	file, name, err := readConfigFile(c)
	if err != nil {
		return err
	}
	rows := [][]string{{"SETTING", "VALUE", "FROM", "WHAT IT IS"}}
	var list []settingJSON
	for _, s := range settings {
		v, from := settle(c, s, flags, file, name)
		if s.secret && v != "" {
			v = "(set)"
		}
		rows = append(rows, []string{s.key, v, from, s.help})
		list = append(list, settingJSON{s.key, v, from, s.envName(), s.help})
	}
	if c.json {
		return c.printJSON(list)
	}
	fmt.Fprintf(c.out, "data directory  %s\n\n", c.cfg.home)
	return c.printTable(rows)
}
