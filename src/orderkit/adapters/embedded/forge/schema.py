"""
The tables of the forge, as steps from one release's state to the next.

A step is never changed after it was released: a state folder remembers how many it has
taken (``PRAGMA user_version``) and takes the others when it is opened.

Read by ``store``.
"""

_ACCOUNTS_AND_REPOSITORIES = """
CREATE TABLE accounts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  lower_name TEXT NOT NULL UNIQUE,
  is_org INTEGER NOT NULL,
  admin INTEGER NOT NULL DEFAULT 0,
  password TEXT NOT NULL DEFAULT '',
  email TEXT NOT NULL DEFAULT '',
  description TEXT NOT NULL DEFAULT '',
  visibility TEXT NOT NULL DEFAULT 'public'
);
CREATE TABLE tokens (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  digest TEXT NOT NULL UNIQUE,
  last_eight TEXT NOT NULL,
  scopes TEXT NOT NULL,
  UNIQUE (account_id, name)
);
CREATE TABLE owners (
  org_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  PRIMARY KEY (org_id, account_id)
);
CREATE TABLE repositories (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  owner_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  lower_name TEXT NOT NULL,
  state TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  private INTEGER NOT NULL DEFAULT 0,
  archived INTEGER NOT NULL DEFAULT 0,
  default_branch TEXT NOT NULL DEFAULT 'main',
  topics TEXT NOT NULL DEFAULT '',
  created TEXT NOT NULL,
  updated TEXT NOT NULL,
  UNIQUE (owner_id, lower_name)
);
"""

_ISSUES_AND_PULLS = """
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
"""

_COMMENTS = """
ALTER TABLE labels ADD COLUMN archived INTEGER NOT NULL DEFAULT 0;
CREATE TABLE comments (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  issue_id INTEGER NOT NULL REFERENCES issues(id) ON DELETE CASCADE,
  poster_id INTEGER NOT NULL REFERENCES accounts(id),
  body TEXT NOT NULL,
  created TEXT NOT NULL,
  updated TEXT NOT NULL
);
CREATE INDEX comments_of_issue ON comments (issue_id);
"""

_HOOKS = """
CREATE TABLE hooks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  repo_id INTEGER REFERENCES repositories(id) ON DELETE CASCADE,
  owner_id INTEGER REFERENCES accounts(id) ON DELETE CASCADE,
  url TEXT NOT NULL,
  content_type TEXT NOT NULL,
  name TEXT NOT NULL,
  secret TEXT NOT NULL,
  events TEXT NOT NULL,
  branch_filter TEXT NOT NULL,
  authorization TEXT NOT NULL,
  active INTEGER NOT NULL,
  created TEXT NOT NULL,
  updated TEXT NOT NULL
);
CREATE INDEX hooks_of_repository ON hooks (repo_id);
CREATE INDEX hooks_of_owner ON hooks (owner_id);
"""

_TEAMS = """
CREATE TABLE teams (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  org_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  lower_name TEXT NOT NULL,
  description TEXT NOT NULL,
  permission TEXT NOT NULL,
  units TEXT NOT NULL,
  all_repositories INTEGER NOT NULL,
  may_create INTEGER NOT NULL,
  UNIQUE (org_id, lower_name)
);
CREATE TABLE team_members (
  team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  PRIMARY KEY (team_id, account_id)
);
CREATE INDEX teams_of_user ON team_members (account_id);
CREATE TABLE team_repositories (
  team_id INTEGER NOT NULL REFERENCES teams(id) ON DELETE CASCADE,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  PRIMARY KEY (team_id, repo_id)
);
CREATE TABLE collaborators (
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  level TEXT NOT NULL,
  PRIMARY KEY (repo_id, account_id)
);
INSERT INTO teams
  (org_id, name, lower_name, description, permission, units, all_repositories, may_create)
  SELECT id, 'Owners', 'owners', '', 'owner', '{}', 1, 1 FROM accounts WHERE is_org = 1;
INSERT INTO team_members
  SELECT t.id, o.account_id FROM owners o JOIN teams t ON t.org_id = o.org_id;
DROP TABLE owners;
"""

_RENAMES = """
ALTER TABLE accounts ADD COLUMN moving_to TEXT NOT NULL DEFAULT '';
ALTER TABLE repositories ADD COLUMN moving_to TEXT NOT NULL DEFAULT '';
CREATE TABLE account_redirects (
  lower_name TEXT PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE
);
CREATE TABLE repository_redirects (
  owner_id INTEGER NOT NULL REFERENCES accounts(id) ON DELETE CASCADE,
  lower_name TEXT NOT NULL,
  repo_id INTEGER NOT NULL REFERENCES repositories(id) ON DELETE CASCADE,
  PRIMARY KEY (owner_id, lower_name)
);
"""

MIGRATIONS = (_ACCOUNTS_AND_REPOSITORIES, _ISSUES_AND_PULLS, _COMMENTS, _HOOKS, _TEAMS, _RENAMES)
