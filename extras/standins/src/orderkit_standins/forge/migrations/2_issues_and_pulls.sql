CREATE TABLE numbers (
  repo_id INTEGER PRIMARY KEY REFERENCES repositories(id) ON DELETE CASCADE,
  last INTEGER NOT NULL
);
CREATE TABLE issues (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  is_pull INTEGER NOT NULL,
  poster_id INTEGER NOT NULL REFERENCES accounts(id),
  title TEXT NOT NULL,
  body TEXT NOT NULL DEFAULT '',
  version INTEGER NOT NULL DEFAULT 0,
  created TEXT NOT NULL,
  updated TEXT NOT NULL,
  closed TEXT NOT NULL DEFAULT '',
  UNIQUE (repo_id, number)
);
CREATE TABLE labels (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  color TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  exclusive INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE issue_labels (
  issue_id INTEGER NOT NULL REFERENCES issues(id) ON DELETE CASCADE,
  label_id INTEGER NOT NULL REFERENCES labels(id) ON DELETE CASCADE,
  PRIMARY KEY (issue_id, label_id)
);
CREATE TABLE pulls (
  issue_id INTEGER PRIMARY KEY REFERENCES issues(id) ON DELETE CASCADE,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  head TEXT NOT NULL,
  base TEXT NOT NULL,
  merge_base TEXT NOT NULL DEFAULT '',
  landing TEXT NOT NULL DEFAULT '',
  merge_commit TEXT NOT NULL DEFAULT '',
  merged TEXT NOT NULL DEFAULT '',
  merger_id INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX pulls_of_repo ON pulls (repo_id);
CREATE TABLE auto_merges (
  issue_id INTEGER PRIMARY KEY REFERENCES pulls(issue_id) ON DELETE CASCADE,
  doer_id INTEGER NOT NULL REFERENCES accounts(id),
  style TEXT NOT NULL,
  message TEXT NOT NULL,
  delete_branch INTEGER NOT NULL
);
CREATE TABLE merge_settings (
  repo_id INTEGER PRIMARY KEY REFERENCES repositories(id) ON DELETE CASCADE,
  settings TEXT NOT NULL
);
CREATE TABLE statuses (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  sha TEXT NOT NULL,
  context TEXT NOT NULL,
  state TEXT NOT NULL,
  description TEXT NOT NULL,
  target_url TEXT NOT NULL,
  creator_id INTEGER NOT NULL REFERENCES accounts(id),
  created TEXT NOT NULL
);
CREATE INDEX statuses_of_commit ON statuses (repo_id, sha);
CREATE TABLE protections (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  priority INTEGER NOT NULL,
  rule TEXT NOT NULL,
  created TEXT NOT NULL,
  updated TEXT NOT NULL,
  UNIQUE (repo_id, name)
);
