

# The part of child.py for EnvPool, whose environments are stepped together by one call.


class Pool(Described):
    """EnvPool environments, which are stepped together by one call.

    EnvPool takes the seeds of all environments when it is created, but the parent process resets the environments one
    at a time. Until the first step, a separate EnvPool with a single environment therefore answers each reset. The
    first step creates the EnvPool of all environments with the same seeds, so it begins with the same observations.

    EnvPool resets an environment at the step after the end of an episode. The parent process resets it before that
    step, so no action is lost, and the observation of the last step is the final observation of the episode.
    """

    def __init__(self, gym, envpool, name, count, threads):
        super().__init__()
        self.envpool, self.name, self.threads = envpool, name, threads
        spec = envpool.make_spec(name)
        config = spec.config
        if getattr(config, "max_num_players", 1) > 1:
            raise Refusal(UNSUPPORTED, f"{name} has several players, which is not supported")
        # The parent process stacks the frames, so that each frame crosses the pipe only once.
        self.stack = getattr(config, "stack_num", 1)
        self.options = {"stack_num": 1} if self.stack > 1 else {}
        spec = envpool.make_spec(name, **self.options)
        self.describe_observations(gym, spec.observation_space)
        self.describe_actions(gym, spec.action_space)
        # EnvPool stores the channels of an image first; in the pipe, they come last.
        self.is_planar = self.is_image and len(spec.observation_space.shape) == 3
        if self.is_planar:
            self.shape = (*self.shape[1:], self.shape[0])
        self.action_shape = spec.action_space.shape
        self.steps_max = config.max_episode_steps
        self.solved_return = float(getattr(config, "reward_threshold", "nan"))
        self.seeds = [0] * count
        self.lives = [0] * count
        self.pool = None

    def make(self, seeds):
        threads = min(self.threads, len(seeds))
        options = {"num_envs": len(seeds), "seed": seeds, "num_threads": threads, **self.options}
        return self.envpool.make(self.name, env_type="gymnasium", **options)

    def rows(self, observations):
        """Returns the bytes of each observation."""
        if self.is_planar:
            observations = observations.transpose(0, 2, 3, 1)
        rows = self.numpy.ascontiguousarray(observations, dtype=self.dtype)
        return [row.tobytes() for row in rows]

    def reset(self, index, seed):
        if self.pool is None:
            self.seeds[index] = seed
            observations, info = self.make([seed]).reset()
        else:
            observations, info = self.pool.reset(self.numpy.array([index], dtype="i4"))
        self.lives[index] = info["lives"][0] if "lives" in info else 0
        return self.rows(observations)[0]

    def step(self, pipe, request):
        if self.pool is None:
            self.pool = self.make(self.seeds)
            self.pool.reset()
        action = ("u4",) if self.choices is not None else ("f4", len(self.low))
        given = self.numpy.frombuffer(request, [("env", "<u4"), ("action", *action)], offset=5)
        actions, envs = given["action"], given["env"].astype("i4")
        if self.choices is None:
            actions = actions.reshape(len(envs), *self.action_shape)
        else:
            actions = actions.astype("i8") + self.start
        observations, rewards, terminated, truncated, info = self.pool.step(actions, envs)
        flags = TERMINATED * terminated | TRUNCATED * truncated
        if "lives" in info:
            flags = flags | LIFE_LOST * self.lost_lives(info["env_id"], info["lives"])
        rows = self.rows(observations)
        order = {env: row for row, env in enumerate(info["env_id"].tolist())}
        parts = [struct.pack("<I", len(envs))]
        for row in (order[env] for env in envs.tolist()):
            parts += (struct.pack("<dB", rewards[row], flags[row]), rows[row])
        pipe.send(OBSERVED, *parts)

    def lost_lives(self, envs, lives):
        """Returns which environments have fewer lives than after the preceding step."""
        lost = self.numpy.array([left < self.lives[env] for env, left in zip(envs, lives)])
        for env, left in zip(envs, lives):
            self.lives[env] = left
        return lost


def make_envpool(name, count, threads, renders):
    """Makes the EnvPool environments that the first request describes."""
    try:
        import envpool
        import gymnasium as gym
    except ImportError as error:
        text = f"{sys.executable} cannot import envpool ({error}); {install('envpool gymnasium')}"
        raise Refusal(MISSING, f"{text}, or set ISWITCH_PYTHON to another") from error
    if renders:
        raise Refusal(UNSUPPORTED, "EnvPool environments cannot be rendered; record videos with Gymnasium")
    if name not in envpool.list_all_envs():
        raise Refusal(UNKNOWN, f"EnvPool {envpool.__version__} has no environment {name}")
    return Pool(gym, envpool, name, count, threads)


