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
