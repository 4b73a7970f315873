#include "runtime/app/talk.h"

#include "runtime/app/interrupt.h"

#include <math.h>
#include <string.h>

/* ---- Opening --------------------------------------------------------------------- */

static void add_stop(struct burin_talk *talk, int32_t id)
{
    for (int i = 0; i < talk->n_stop_ids; i++)
        if (talk->stop_ids[i] == id)
            return;
    if (id >= 0)
        talk->stop_ids[talk->n_stop_ids++] = id;
}

/* What the chat format and the weights say: stops, thoughts, sampling. */
static enum burin_status find_facts(struct burin_talk *talk, struct burin_error *err)
{
    const struct burin_settings *settings = &talk->app->settings;
    const struct burin_generation *generation = burin_engine_generation(talk->engine);

    talk->facts = (struct burin_chat_facts){ .think_from = -1, .think_to = -1 };
    if (talk->chat.source) {
        const enum burin_status status =
                burin_chat_facts(&talk->chat, talk->tokenizer, &talk->facts, err);
        if (status && !settings->raw)
            return status;
    }
    if (settings->think && talk->facts.think_from < 0)
        return burin_fail(
                err, BURIN_EUSAGE, "--think: %s does not think before it answers",
                talk->app->model->name);
    if (settings->ignore_eos)
        return BURIN_OK;
    for (int i = 0; i < talk->facts.n_stops; i++)
        add_stop(talk, talk->facts.stops[i]);
    for (int i = 0; i < generation->n_stops; i++)
        add_stop(talk, generation->stops[i]);
    add_stop(talk, burin_tokenizer_facts(talk->tokenizer).eos);
    return BURIN_OK;
}

/* The user's word counts most, then the weights', then the format's; greedy without any. */
static void choose_sampling(struct burin_talk *talk)
{
    const struct burin_settings *settings = &talk->app->settings;
    const struct burin_generation *said = burin_engine_generation(talk->engine);
    const struct burin_chat_facts *facts = &talk->facts;
    struct burin_sampling *sampling = &talk->sampling;

    *sampling = burin_greedy;
    if (facts->has_sampling) {
        sampling->temperature = facts->temperature;
        sampling->top_k = facts->top_k;
        sampling->top_p = facts->top_p;
    }
    if (!isnan(said->temperature) || said->draws)
        sampling->temperature = isnan(said->temperature) ? 1 : (float)said->temperature;
    if (said->is_greedy)
        sampling->temperature = 0;
    if (!isnan(said->top_k))
        sampling->top_k = (int)said->top_k;
    if (!isnan(said->top_p))
        sampling->top_p = (float)said->top_p;
    if (!isnan(said->min_p))
        sampling->min_p = (float)said->min_p;

    if (settings->temperature.given)
        sampling->temperature = (float)settings->temperature.number;
    if (settings->top_k.given)
        sampling->top_k = (int)settings->top_k.bytes;
    if (settings->top_p.given)
        sampling->top_p = (float)settings->top_p.number;
    if (settings->min_p.given)
        sampling->min_p = (float)settings->min_p.number;
    sampling->seed = settings->seed;
    talk->own_sampling = !settings->temperature.given && sampling->temperature > 0;
}

static enum burin_status take_room(struct burin_talk *talk, struct burin_error *err)
{
    struct burin_app *app = talk->app;
    const size_t push = burin_decoder_room(talk->tokenizer) + BURIN_CHAT_HEAD;
    talk->room = burin_arena_take(&app->arena, push, 1, 1);
    talk->stop.texts = &app->settings.stop;
    talk->stop.buffer =
            burin_arena_take(&app->arena, burin_stop_room(&app->settings.stop, push), 1, 1);
    const size_t n_ctx = (size_t)burin_engine_info(talk->engine).n_ctx;
    talk->ids = BURIN_TAKE(&app->arena, n_ctx + 1, int32_t);
    if (!talk->room || !talk->stop.buffer || !talk->ids)
        return burin_fail(
                err, BURIN_ENOMEM, "no memory for an answer of %zu tokens", n_ctx);
    return BURIN_OK;
}

enum burin_status burin_talk_open(
        struct burin_talk *talk,
        struct burin_app *app,
        struct burin_options *options,
        struct burin_error *err)
{
    *talk = (struct burin_talk){
        .app = app, .out = stdout, .thought_begin = "", .thought_end = ""
    };
    enum burin_status status = burin_app_open(app, options, &talk->engine, err);
    if (status)
        return status;

    talk->tokenizer = burin_engine_tokenizer(talk->engine);
    if (!talk->tokenizer) {
        status = burin_app_no_tokenizer(burin_engine_info(talk->engine).weights, err);
        goto fail;
    }
    char *name = burin_arena_take(&app->arena, strlen(app->model->architecture) + 16, 1, 1);
    if (name)
        sprintf(name, "%s_chat.lua", app->model->architecture);
    talk->chat = (struct burin_chat){ app->model->chat, app->model->variant,
                                      name ? name : "the chat format" };
    status = find_facts(talk, err);
    if (!status)
        status = take_room(talk, err);
    if (!status) {
        choose_sampling(talk);
        return BURIN_OK;
    }
fail:
    burin_talk_close(talk);
    return status;
}

void burin_talk_close(struct burin_talk *talk)
{
    burin_engine_close(talk->engine);
    burin_arena_close(&talk->call);
    talk->engine = NULL;
}

static bool is_first_of_user(const struct burin_talk *talk)
{
    for (int i = 0; i < talk->n_messages; i++)
        if (strcmp(talk->messages[i].role, "user") == 0)
            return false;
    return true;
}

/* What was attached, then the text. */
static void attach(struct burin_attached *attached, struct burin_message *message)
{
    if (!attached || !attached->n_parts)
        return;
    attached->parts[attached->n_parts] =
            (struct burin_part){ .kind = BURIN_PART_TEXT, .text = message->content };
    message->parts = attached->parts;
    message->n_parts = attached->n_parts + 1;
}

enum burin_status burin_talk_say(
        struct burin_talk *talk,
        const char *role,
        struct burin_span content,
        struct burin_error *err)
{
    if (talk->n_messages == BURIN_MAX_MESSAGES)
        return burin_fail(
                err, BURIN_ELIMIT, "a talk has at most %d messages", BURIN_MAX_MESSAGES);
    struct burin_message *message = &talk->messages[talk->n_messages];
    *message = (struct burin_message){ .role = role, .content = content };
    if (strcmp(role, "user") == 0 && is_first_of_user(talk))
        attach(talk->attached, message);
    talk->n_messages++;
    return BURIN_OK;
}

/* ---- An answer ------------------------------------------------------------------- */

static void write_out(struct burin_talk *talk, struct burin_span text)
{
    if (!talk->out || !text.length)
        return;
    fwrite(text.at, 1, text.length, talk->out);
    (void)burin_app_flush(talk->app, NULL); /* noted: the answer ends, and tells it */
    talk->ended_with_newline = text.at[text.length - 1] == '\n';
}

static void write_thought(struct burin_talk *talk, size_t length)
{
    if (!talk->thoughts || !length)
        return;
    if (!talk->showed_thought)
        fputs(talk->thought_begin, talk->thoughts);
    talk->showed_thought = true;
    fwrite(talk->room, 1, length, talk->thoughts);
}

/* A thought has ended, or the turn has. */
static void end_thought(struct burin_talk *talk)
{
    write_thought(talk, burin_decoder_flush(&talk->thought_decoder, talk->room));
    if (talk->showed_thought)
        fprintf(talk->thoughts, "%s\n", talk->thought_end);
    talk->showed_thought = false;
}

static bool on_token(struct burin_request *request, int32_t token)
{
    struct burin_talk *talk = request->user;
    talk->ids[talk->n_ids++] = token;
    if (burin_thought_mark(&talk->thought, token)) {
        end_thought(talk);
        return true;
    }
    if (talk->thought.thinks) {
        const size_t length = burin_decoder_push(&talk->thought_decoder, token, talk->room);
        write_thought(talk, burin_thought_text(&talk->thought, talk->room, length));
        return true;
    }
    const size_t length = burin_decoder_push(&talk->decoder, token, talk->room);
    write_out(talk, burin_stop_push(&talk->stop, talk->room, length));
    return !talk->stop.met && !talk->app->stdout_error;
}

static enum burin_status encode_raw(
        struct burin_talk *talk,
        struct burin_span text,
        struct burin_request *request,
        struct burin_error *err)
{
    int32_t *encoded;
    size_t n_ids;
    enum burin_status status = burin_encode(
            talk->tokenizer, text, BURIN_PLAIN, &talk->call, &encoded, &n_ids, err);
    if (status)
        return burin_app_blame_text(status, "the prompt", err);
    const struct burin_tokenizer_facts facts = burin_tokenizer_facts(talk->tokenizer);
    const size_t n_prefix = (size_t)facts.n_prefix;
    request->n_ids = (int)(n_prefix + n_ids);
    request->ids = encoded;
    if (n_prefix == 0)
        return BURIN_OK;
    int32_t *ids = BURIN_TAKE(&talk->call, n_prefix + n_ids, int32_t);
    if (!ids)
        return burin_fail(err, BURIN_ENOMEM, "no memory for a prompt of %zu tokens", n_ids);
    memcpy(ids, facts.prefix, n_prefix * sizeof *ids);
    memcpy(ids + n_prefix, encoded, n_ids * sizeof *ids);
    request->ids = ids;
    return BURIN_OK;
}

/* Where the soft tokens of a prompt stand, and the pictures they are made of. In place of a soft
 * token an engine wants the token that pads; a vocabulary without one keeps the format's. */
static enum burin_status place_pictures(
        struct burin_talk *talk,
        const struct burin_prompt *prompt,
        struct burin_request *request,
        struct burin_error *err)
{
    const size_t n = (size_t)prompt->n_soft;
    const int32_t pad = burin_token_named(talk->tokenizer, burin_span_of("<pad>"));
    struct burin_picture *pictures = BURIN_TAKE(&talk->call, n + 1, struct burin_picture);
    if (!pictures)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %zu pictures", n);
    for (size_t i = 0; i < n; i++) {
        const struct burin_soft *soft = &prompt->soft[i];
        pictures[i] = (struct burin_picture){
            .begin = (int)soft->at,
            .patches = talk->attached->pictures[soft->item],
        };
        for (int k = 0; k < soft->n && pad >= 0; k++)
            prompt->ids[soft->at + (size_t)k] = pad;
    }
    request->pictures = pictures;
    request->n_pictures = prompt->n_soft;
    return BURIN_OK;
}

/* The ids and pictures of a request. */
static enum burin_status encode_chat(
        struct burin_talk *talk, struct burin_request *request, struct burin_error *err)
{
    struct burin_piece *pieces;
    int n_pieces;
    const struct burin_chat_options options = {
        .add_generation_prompt = true,
        .thinking = talk->app->settings.think,
    };
    enum burin_status status = burin_chat_render(
            &talk->chat, talk->messages, talk->n_messages, options, &talk->call, &pieces,
            &n_pieces, err);
    if (status)
        return burin_app_blame_text(status, "the messages", err);
    struct burin_prompt prompt;
    status =
            burin_chat_encode(talk->tokenizer, pieces, n_pieces, &talk->call, &prompt, err);
    if (status)
        return burin_app_blame_text(status, "the messages", err);
    request->ids = prompt.ids;
    request->n_ids = (int)prompt.n_ids;
    return place_pictures(talk, &prompt, request, err);
}

/* There is room for the prompt, and for a token where one is to be made. */
static enum burin_status check_length(
        const struct burin_talk *talk, int n_prompt, struct burin_error *err)
{
    const size_t n_ids = (size_t)n_prompt;
    const int n_ctx = burin_engine_info(talk->engine).n_ctx;
    const int most = talk->app->model->n_ctx;
    const int n_made = talk->app->settings.n_predict != 0;
    const char *beside = n_made ? " beside an answer" : "";
    if (n_ids + (size_t)n_made <= (size_t)n_ctx)
        return BURIN_OK;
    /* An answer of some length, in whole pages. */
    const int answer = talk->app->settings.n_predict;
    const size_t wanted =
            (n_ids + (size_t)(answer > 0 ? answer : 256 * n_made) + 63) / 64 * 64;
    if (n_ids + (size_t)n_made <= (size_t)most)
        return burin_fail(
                err, BURIN_ELIMIT,
                "the prompt has %zu tokens, a context of %d has room for %d%s; start with "
                "--ctx-size %zu",
                n_ids, n_ctx, n_ctx - n_made, beside,
                wanted < (size_t)most ? wanted : (size_t)most);
    return burin_fail(
            err, BURIN_ELIMIT,
            "the prompt has %zu tokens, a context of %d has room for %d%s, and the model "
            "was trained for %d: give a shorter text",
            n_ids, n_ctx, n_ctx - n_made, beside, most);
}

/* The ids of a turn's thoughts, or of its answer, as text in the app's arena. */
static enum burin_status text_of_some(
        struct burin_talk *talk,
        bool thoughts,
        struct burin_span *text,
        struct burin_error *err)
{
    struct burin_thought thought = talk->first;
    int32_t *ids = BURIN_TAKE(&talk->call, (size_t)talk->n_ids + 1, int32_t);
    size_t n = 0;
    if (!ids)
        return burin_fail(err, BURIN_ENOMEM, "no memory for %d tokens", talk->n_ids);
    for (int i = 0; i < talk->n_ids; i++)
        if (!burin_thought_mark(&thought, talk->ids[i]) && thought.thinks == thoughts)
            ids[n++] = talk->ids[i];
    return burin_decode(talk->tokenizer, ids, n, false, &talk->app->arena, text, err);
}

/* The text of what was made, cut before the stop text that ended it. */
static enum burin_status text_of(
        struct burin_talk *talk, struct burin_span *answer, struct burin_error *err)
{
    enum burin_status status = text_of_some(talk, true, &talk->thought_text, err);
    if (!status)
        status = text_of_some(talk, false, answer, err);
    const size_t head = strlen(talk->facts.think_head);
    if (!status && !talk->first.thinks && talk->thought_text.length >= head &&
        memcmp(talk->thought_text.at, talk->facts.think_head, head) == 0) {
        talk->thought_text.at += head;
        talk->thought_text.length -= head;
    }
    if (status || !talk->stop.met)
        return status;
    const struct burin_texts *texts = &talk->app->settings.stop;
    for (int i = 0; i < texts->n; i++) {
        const char *found = memmem(
                answer->at, answer->length, texts->values[i], strlen(texts->values[i]));
        if (found)
            answer->length = (size_t)(found - answer->at);
    }
    return BURIN_OK;
}

enum burin_status burin_talk_answer(
        struct burin_talk *talk,
        const struct burin_span *raw,
        struct burin_span *answer,
        struct burin_error *err)
{
    const struct burin_settings *settings = &talk->app->settings;
    const struct burin_arena_mark mark = burin_arena_mark(&talk->call);
    struct burin_request request = {
        .max_tokens = settings->n_predict,
        .stop_ids = talk->stop_ids,
        .n_stop_ids = talk->n_stop_ids,
        .sampling = talk->sampling,
        .on_token = on_token,
        .user = talk,
    };
    enum burin_status status =
            raw ? encode_raw(talk, *raw, &request, err) : encode_chat(talk, &request, err);
    if (!status)
        status = check_length(talk, request.n_ids, err);
    if (status)
        goto out;

    talk->request = request;
    talk->n_ids = 0;
    talk->decoder = (struct burin_decoder){ .tokenizer = talk->tokenizer };
    talk->thought_decoder = talk->decoder;
    talk->thought =
            raw ? (struct burin_thought){ .from = -1 }
                : burin_thought_begin(&talk->facts, request.ids, (size_t)request.n_ids);
    talk->first = talk->thought;
    talk->showed_thought = false;
    talk->stop.met = false;
    talk->stop.n_held = 0;
    talk->stop.begin = 0;
    talk->ended_with_newline = false;
    status = burin_submit(talk->engine, &talk->request, err);
    if (status)
        goto out;
    burin_interrupt_cancels(&talk->request);
    status = burin_engine_run(talk->engine, err);
    burin_interrupt_wakes();
    if (status)
        goto out;

    end_thought(talk);
    const size_t length = burin_decoder_flush(&talk->decoder, talk->room);
    write_out(talk, burin_stop_push(&talk->stop, talk->room, length));
    write_out(talk, burin_stop_flush(&talk->stop));
    status = text_of(talk, answer, err);
    if (status)
        goto out;
    if (burin_interrupt_taken())
        status = burin_fail(err, BURIN_ESTOPPED, "interrupted");
    else if (talk->request.finish == BURIN_FAILED)
        status = burin_fail(
                err, talk->request.error.status, "%s", talk->request.error.message);
    else if (talk->app->stdout_error)
        status = burin_app_flush(talk->app, err);
out:
    burin_arena_rewind(&talk->call, mark);
    return status;
}
